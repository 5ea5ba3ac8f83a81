import json


def walk(part, path):
    size = part.get("size", 0)
    for child in part.get("children", []):
        size += walk(child, f"{path}/{child['name']}")
    out(f"{path} {size}")
    return size


with open(args[0]) as file:
    tree = json.load(file)
walk(tree, tree["name"])
