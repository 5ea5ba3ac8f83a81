const crossed = new Uint8Array(1000000);
let count = 0;
for (let i = 2; i < crossed.length; i++) {
  if (crossed[i] === 0) {
    count += 1;
    if (i < 1000) for (let k = i * i; k < crossed.length; k += i) crossed[k] = 1;
  }
}
String(count);
