import glob
import os
import re

pattern, part, ignore_case, limit = args
if not part:
    fail("EBOUND", "the text to look for is empty")
fold = str.lower if ignore_case == "true" else str
limit = int(limit)
many = re.search(r"[*?{\[]", pattern) and not os.path.exists(pattern)
paths = sorted(glob.glob(pattern, recursive=True)) if many else [pattern]
if not paths:
    fail("ENOENT", f"no file matches {pattern}")
report = []
total = matching = 0
for path in paths:
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        if not many:
            raise
        report.append(f"{path}: not a readable text")
        continue
    found = [f"{n}:{line}" for n, line in enumerate(lines, 1) if fold(part) in fold(line)]
    if found:
        report.append(f"{path}: {len(found)}")
        report += found[: max(0, limit - total)]
        total += len(found)
        matching += 1
out("\n".join([f"{total} lines match in {matching} of {len(paths)} files", *report]))
