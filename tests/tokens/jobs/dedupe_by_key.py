import json

with open(args[0]) as file:
    people = json.load(file)
newest = {}
for p in sorted(people, key=lambda p: p["date"], reverse=True):
    newest.setdefault(p["email"].lower(), p)
out(json.dumps(list(newest.values())))
