from collections import Counter

path, generations = args
with open(path) as file:
    alive = {(r, c) for r, row in enumerate(file) for c, cell in enumerate(row) if cell == "#"}
for _ in range(int(generations)):
    near = Counter((r + i, c + j) for r, c in alive for i in (-1, 0, 1) for j in (-1, 0, 1))
    alive = {cell for cell, count in near.items() if count == 3 or count == 4 and cell in alive}
out(str(len(alive)))
