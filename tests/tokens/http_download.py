from pathlib import Path

url, path = args
body = http_get(url)
Path(path).parent.mkdir(parents=True, exist_ok=True)
Path(path).write_text(body, newline="")
out(f"saved {len(body.encode())} bytes to {path}")
