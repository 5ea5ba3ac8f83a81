import shutil
from pathlib import Path

Path(args[1]).parent.mkdir(parents=True, exist_ok=True)
shutil.copy(args[0], args[1])
