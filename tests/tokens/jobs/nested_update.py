import json

with open(args[0]) as file:
    shop = json.load(file)
for order in shop["orders"]:
    order.pop("draft", None)
    order["total"] = sum(item["price"] * item["count"] for item in order["items"])
shop.setdefault("meta", {})["changed"] = args[1]
out(json.dumps(shop))
