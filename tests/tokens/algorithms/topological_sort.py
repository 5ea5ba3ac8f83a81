needs = {}
with open(args[0]) as file:
    for line in file:
        name, names = line.split(":")
        needs[name] = names.split()
seen = set()
order = []


def visit(name):
    if name in order:
        return
    if name in seen:
        fail("EBOUND", f"{name} needs itself")
    seen.add(name)
    for need in needs.get(name, []):
        visit(need)
    order.append(name)


for name in needs:
    visit(name)
out("\n".join(order))
