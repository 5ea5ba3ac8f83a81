import json
from collections import defaultdict

amounts = defaultdict(list)
with open(args[0]) as file:
    for order in json.load(file):
        amounts[order["customer"]].append(order["amount"])
for customer, own in amounts.items():
    out(f"{customer}: {len(own)} orders, {sum(own):.2f}")
