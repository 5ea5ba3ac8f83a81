size = 1000000
crossed = [False] * size
count = 0
for i in range(2, size):
    if not crossed[i]:
        count += 1
        if i < 1000:
            for k in range(i * i, size, i):
                crossed[k] = True
str(count)
