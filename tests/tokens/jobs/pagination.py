import json

url = args[0]
while url:
    page = json.loads(http_get(url))
    for item in page["items"]:
        out(item["name"])
    url = page["next"]
