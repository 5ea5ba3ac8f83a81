import json
import re

rows = json.loads(args[0], parse_float=str)
keys = list(dict.fromkeys(key for row in rows for key in row))
lines = []
for row in [{key: key for key in keys}, *rows]:
    cells = []
    for key in keys:
        value = row.get(key, "")
        cell = value if isinstance(value, str) else json.dumps(value)
        cells.append(re.sub(r"\s*[\r\n]\s*", " ", cell.replace("|", "\\|")))
    lines.append(f"| {' | '.join(cells)} |")
if keys:
    lines.insert(1, "|" + "---|" * len(keys))
out("\n".join(lines) if keys else "")
