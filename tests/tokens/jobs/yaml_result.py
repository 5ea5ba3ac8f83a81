with open(args[0]) as file:
    services = yaml_load(file)
for s in services:
    if s["running"] < s["wanted"]:
        out(f"{s['name']}: {s['running']} of {s['wanted']}")
