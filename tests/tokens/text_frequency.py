import re
from collections import Counter

path, limit = args
with open(path) as file:
    count = Counter(re.findall(r"(?:[^\W_]|')+", file.read().lower()))
out("\n".join(f"{n} {word}" for word, n in count.most_common(int(limit))))
