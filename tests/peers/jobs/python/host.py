total = 0
for i in range(64):
    total += i * i
loud = upper(concat("hello, ", name))
loud if total == 85344 and length(loud) == 12 else "wrong"
