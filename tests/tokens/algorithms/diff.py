from pathlib import Path

old, new = (Path(path).read_text().splitlines() for path in args)
row = [0] * len(new)
same = 0
for line in old:
    diagonal = same = 0
    for j, other in enumerate(new):
        above = row[j]
        same = row[j] = diagonal + 1 if line == other else max(above, same)
        diagonal = above
out(f"-{len(old) - same} +{len(new) - same}")
