import re
from collections import Counter

text, limit = args
count = Counter(re.findall(r"(?:[^\W_]|')+", text.lower()))
out("\n".join(f"{n} {word}" for word, n in count.most_common(int(limit))))
