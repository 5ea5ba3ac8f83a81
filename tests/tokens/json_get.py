import json
import re

document, path = args
value = json.loads(document)
for key in re.findall(r"[^.\[\]]+", path):
    value = value[int(key) if isinstance(value, list) else key]
out(value if isinstance(value, str) else json.dumps(value))
