import csv
from collections import defaultdict

amounts = defaultdict(list)
with open(args[0], newline="") as file:
    for row in csv.DictReader(file):
        amounts[row["region"]].append(int(row["amount"]))
with open(args[1], "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["region", "sales", "total"])
    for region, own in amounts.items():
        writer.writerow([region, len(own), sum(own)])
