import math
from pathlib import Path

path, percent = args
numbers = sorted(Path(path).read_text().split(), key=float)
rank = math.ceil(int(percent) * len(numbers) / 100)
out(numbers[max(0, rank - 1)])
