import json

with open(args[0]) as file:
    items = json.load(file)
items.append({"name": "total", "price": sum(item["price"] for item in items)})
for item in items:
    out(f"{item['name']:<10}{item['price']:>10,.2f}")
