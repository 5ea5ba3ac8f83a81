import glob
import os

pattern, part, ignore_case, limit = args
if not part:
    fail("EBOUND", "the text to look for is empty")
fold = str.lower if ignore_case == "true" else str
limit = int(limit)
paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
if not paths:
    fail("ENOENT", f"no file matches {pattern}")
report = []
total = matching = 0
for path in paths:
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        if len(paths) == 1:
            raise
        report.append(f"{path}: {error}")
        continue
    found = [f"{n}:{line}" for n, line in enumerate(lines, 1) if fold(part) in fold(line)]
    if found:
        report.append(f"{path}: {len(found)}")
        report += found[: max(0, limit - total)]
        total += len(found)
        matching += 1
out("\n".join([f"{total} lines match in {matching} of {len(paths)} files", *report]))
