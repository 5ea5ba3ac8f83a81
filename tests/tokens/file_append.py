from pathlib import Path

path, content = args
Path(path).parent.mkdir(parents=True, exist_ok=True)
with open(path, "a", newline="") as file:
    file.write(content)
out(f"appended {len(content.encode())} bytes to {path}")
