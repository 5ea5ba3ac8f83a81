import json

count = 0
total = 0
for item in json.loads(document):
    if item["active"]:
        count += 1
        total += item["amount"]
f"{count} {total}"
