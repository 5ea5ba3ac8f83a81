"""Lists the crates of the module with their licences, from what `cargo metadata` says on standard input."""
import json
import sys

metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
reached, waiting = set(), [metadata["resolve"]["root"]]
while waiting:
    crate = waiting.pop()
    if crate in reached:
        continue
    reached.add(crate)
    for dependency in nodes[crate]["deps"]:
        # What only builds or tests is no part of the module.
        if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
            waiting.append(dependency["pkg"])
reached.discard(metadata["resolve"]["root"])
print("# Licences\n\nThe crates in the module of the shell's commands. `shell/toolbox/build` makes this list.\n")
print("| crate | version | licence |\n|---|---|---|")
for package in sorted((packages[crate] for crate in reached), key=lambda package: (package["name"], package["version"])):
    print(f"| {package['name']} | {package['version']} | {package['license'] or package['license_file']} |")
