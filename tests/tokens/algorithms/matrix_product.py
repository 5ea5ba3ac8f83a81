def rows(path):
    with open(path) as file:
        return [[int(x) for x in line.split()] for line in file]


a, b = map(rows, args)
for row in a:
    out(" ".join(str(sum(x * y for x, y in zip(row, column))) for column in zip(*b)))
