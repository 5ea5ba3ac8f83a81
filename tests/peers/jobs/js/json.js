let count = 0;
let sum = 0;
for (const item of JSON.parse(document)) {
  if (item.active) {
    count += 1;
    sum += item.amount;
  }
}
`${count} ${sum}`;
