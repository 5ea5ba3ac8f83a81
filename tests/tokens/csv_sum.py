import csv

path, column, separator = args
total = 0
with open(path, newline="", encoding="utf-8-sig") as file:
    rows = csv.DictReader(file, delimiter=separator, restval="", strict=True)
    if column not in rows.fieldnames:
        out(f"no column {column}; the columns are: {', '.join(rows.fieldnames)}")
        fail("ENOENT")
    for row in rows:
        value = row[column].strip()
        if not value:
            continue
        try:
            total += float(value)
        except ValueError:
            out(f"not a number: {value}")
            fail("EPARSE")
out(f"{total:.6f}".rstrip("0").rstrip("."))
