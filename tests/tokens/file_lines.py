path, first, count = args
with open(path) as file:
    lines = file.read().splitlines()
first, count, total = int(first), int(count), len(lines)
first = first - 1 if first > 0 else max(0, total + first)
if first and first >= total:
    fail("EBOUND", f"no line {args[1]}; lines in the file: {total}")
out("\n".join(lines[first : first + count]))
