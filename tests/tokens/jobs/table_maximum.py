import re

rows = re.findall(r"<tr>(.*?)</tr>", http_get(args[0]), re.DOTALL)
cells = [re.findall(r"<td>(.*?)</td>", row, re.DOTALL) for row in rows]
city = max(filter(None, cells), key=lambda row: int(row[1]))
out(" ".join(city))
