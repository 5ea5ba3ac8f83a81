import json

groups = {}
for record in json.loads(document):
    region = record["region"]
    if region not in groups:
        groups[region] = []
    groups[region].append(record)
rows = []
for region, records in groups.items():
    rows.append((region, len(records), sum([record["amount"] for record in records])))
rows.sort(key=lambda row: row[2], reverse=True)
lines = ["region,records,amount"]
for region, count, amount in rows:
    lines.append(f"{region},{count},{amount}")
"\n".join(lines) + "\n"
