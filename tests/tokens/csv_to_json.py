import csv
import json

path, separator = args
with open(path, newline="", encoding="utf-8-sig") as file:
    rows = list(csv.DictReader(file, delimiter=separator, restval="", strict=True))
if any(None in row for row in rows):
    fail("EPARSE")
out(json.dumps(rows))
