import json
import re

document, path = args
document = value = json.loads(document)
*parents, last = re.findall(r"[^.\[\]]+", path)
for key in parents:
    value = value[int(key) if isinstance(value, list) else key]
del value[int(last) if isinstance(value, list) else last]
out(json.dumps(document))
