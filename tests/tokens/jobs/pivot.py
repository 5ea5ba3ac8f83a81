import csv
from collections import Counter, defaultdict

sold = defaultdict(Counter)
with open(args[0], newline="") as file:
    for row in csv.DictReader(file):
        sold[row["month"]][row["product"]] += int(row["sold"])
products = sorted({product for sums in sold.values() for product in sums})
out(" ".join(["month", *products]))
for month, sums in sold.items():
    out(" ".join([month, *(str(sums[p]) for p in products)]))
