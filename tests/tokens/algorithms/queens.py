n = int(args[0])


def place(row, columns, left, right):
    if row == n:
        return 1
    count = 0
    for i in range(n):
        bit = 1 << i
        if not bit & (columns | left | right):
            count += place(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count


out(str(place(0, 0, 0, 0)))
