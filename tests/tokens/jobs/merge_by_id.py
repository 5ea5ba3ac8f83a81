import json
from pathlib import Path

old, new = (json.loads(Path(path).read_text()) for path in args)
merged = {record["id"]: record for record in old}
for record in new:
    merged[record["id"]] = merged.get(record["id"], {}) | record
out(json.dumps(list(merged.values())))
