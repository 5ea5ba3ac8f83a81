from pathlib import Path

path = Path(args[0])
if path.is_dir():
    path.rmdir()
else:
    path.unlink()
