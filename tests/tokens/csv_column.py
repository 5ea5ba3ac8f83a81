import csv
import json

path, column, separator = args
with open(path, newline="", encoding="utf-8-sig") as file:
    rows = csv.DictReader(file, delimiter=separator, restval="", strict=True)
    if column not in rows.fieldnames:
        fail("ENOENT", f"no column {column}; the columns are: {', '.join(rows.fieldnames)}")
    out(json.dumps([row[column] for row in rows]))
