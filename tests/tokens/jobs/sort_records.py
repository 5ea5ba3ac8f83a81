import json

with open(args[0]) as file:
    players = json.load(file)
for p in sorted(players, key=lambda p: (p["team"], -p["points"])):
    out(f"{p['team']} {p['points']} {p['name']}")
