n = int(args[0])
crossed = bytearray(n)
for i in range(2, n):
    if not crossed[i]:
        out(str(i))
        for k in range(i * i, n, i):
            crossed[k] = 1
