from pathlib import Path

path, content = args
Path(path).parent.mkdir(parents=True, exist_ok=True)
Path(path).write_text(content, newline="")
out(f"wrote {len(content.encode())} bytes to {path}")
