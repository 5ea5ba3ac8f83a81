import json
from decimal import Decimal

with open(args[0]) as file:
    net = sum(Decimal(item["price"]) * item["count"] for item in json.load(file))
tax = round(net * Decimal(args[1]), 2)
out(f"net {net:.2f}")
out(f"tax {tax:.2f}")
out(f"total {net + tax:.2f}")
