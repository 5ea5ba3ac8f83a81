const groups = new Map();
for (const record of JSON.parse(document)) {
  const group = groups.get(record.region);
  if (group === undefined) groups.set(record.region, [record]);
  else group.push(record);
}
const rows = [];
for (const [region, records] of groups) {
  rows.push([region, records.length, records.reduce((sum, record) => sum + record.amount, 0)]);
}
rows.sort((a, b) => b[2] - a[2]);
["region,records,amount", ...rows.map((row) => row.join(","))].join("\n") + "\n";
