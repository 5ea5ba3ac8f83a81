from pathlib import Path

a, b = (Path(path).read_text().strip() for path in args)
row = list(range(len(b) + 1))
for i, x in enumerate(a):
    diagonal = i
    row[0] = i + 1
    for j, y in enumerate(b):
        above = row[j + 1]
        row[j + 1] = min(above + 1, row[j] + 1, diagonal + (x != y))
        diagonal = above
out(str(row[-1]))
