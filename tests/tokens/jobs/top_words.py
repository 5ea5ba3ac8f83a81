import re
from collections import Counter
from pathlib import Path

count = Counter(re.findall(r"\w+", Path(args[0]).read_text().lower()))
for word, n in count.most_common(int(args[1])):
    out(f"{word} {n}")
