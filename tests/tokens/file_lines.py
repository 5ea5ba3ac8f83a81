path, first, count = args
with open(path) as file:
    lines = file.read().splitlines()
first, count, total = int(first), int(count), len(lines)
first = first - 1 if first > 0 else max(0, total + first)
if total and first >= total:
    out(f"there is no such line; lines in the file: {total}")
    fail("EBOUND")
if first > total:
    fail("EBOUND")
out("\n".join(lines[first : first + count]))
