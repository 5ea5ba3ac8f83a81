import csv
from collections import Counter

sales = Counter()
totals = Counter()
with open(args[0], newline="") as file:
    for row in csv.DictReader(file):
        group = row["region"], row["date"][:7]
        sales[group] += 1
        totals[group] += int(row["amount"])
with open(args[1], "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["region", "month", "sales", "total"])
    for group in sorted(sales):
        writer.writerow([*group, sales[group], totals[group]])
