import csv

with open(args[0], newline="") as file:
    names = {row["id"]: row["name"] for row in csv.DictReader(file)}
with open(args[1], newline="") as file:
    for order in csv.DictReader(file):
        out(f"{names.get(order['customer'], 'unknown')} {order['amount']}")
