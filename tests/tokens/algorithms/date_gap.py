from datetime import date
from itertools import pairwise
from pathlib import Path

dates = sorted(map(date.fromisoformat, Path(args[0]).read_text().split()))
start, end = max(pairwise(dates), key=lambda pair: pair[1] - pair[0])
out(f"{(end - start).days} {start}")
