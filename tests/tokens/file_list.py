from pathlib import Path

names = [path.name + "/" * path.is_dir() for path in Path(args[0]).iterdir()]
out("\n".join(sorted(names)))
