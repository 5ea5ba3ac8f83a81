const words = text.match(/\S+/g);
const counts = new Map();
for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
let top = "";
let most = 0;
for (const [word, count] of counts) {
  if (count > most) [top, most] = [word, count];
}
const lines = text.split("\n").length - 1;
`${lines} ${words.length} ${top} ${most}`;
