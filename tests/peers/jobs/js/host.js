let total = 0;
for (let i = 0; i < 64; i++) total += i * i;
const loud = upper(concat("hello, ", name));
total === 85344 && length(loud) === 12 ? loud : "wrong";
