import csv
from decimal import Decimal, InvalidOperation

path, column, separator = args
total = 0
with open(path, newline="", encoding="utf-8-sig") as file:
    rows = csv.DictReader(file, delimiter=separator, restval="", strict=True)
    if column not in rows.fieldnames:
        fail("ENOENT", f"no column {column}; the columns are: {', '.join(rows.fieldnames)}")
    for row in rows:
        value = row[column].strip()
        if not value:
            continue
        try:
            total += Decimal(value)
        except InvalidOperation:
            fail("EPARSE", f"not a number: {value}")
if total == int(total) != int(float(total)):
    fail("EBOUND")
out(f"{total:.6f}".rstrip("0").rstrip("."))
