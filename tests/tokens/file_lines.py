path, first, count = args
with open(path) as file:
    lines = file.read().splitlines()
first, count, total = int(first), int(count), len(lines)
if count < 1:
    out("count is at least 1")
    fail("EBOUND")
if first < 0:
    first = max(1, total + first + 1)
if total == 0 and first == 1:
    out("")
elif not 1 <= first <= total:
    out(f"there is no such line; lines in the file: {total}")
    fail("EBOUND")
else:
    out("\n".join(lines[first - 1 : first - 1 + count]))
