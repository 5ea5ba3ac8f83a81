path, part, ignore_case, limit = args
if not part:
    out("the text to look for is empty")
    fail("EBOUND")
fold = str.lower if ignore_case == "true" else str
limit = int(limit)
found = []
matches = 0
with open(path) as file:
    for number, line in enumerate(file, 1):
        if fold(part) in fold(line):
            matches += 1
            if matches <= limit:
                found.append(f"{number}:{line.rstrip(chr(10))}")
more = matches - len(found)
if more:
    found.append(f"(more matches: {more})")
out("\n".join(found) or "no line matches")
