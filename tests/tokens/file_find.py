from pathlib import Path

part, top = args
if not Path(top).is_dir():
    fail("ENOENT")
found = []
for path in Path(top).rglob("*"):
    if part in path.name:
        found.append(f"{path}/" if path.is_dir() else str(path))
out("\n".join(sorted(found)))
