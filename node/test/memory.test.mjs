// Needs `node --expose-gc`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Program } from "wattle-agent";

test("many warm calls do not grow the memory", async () => {
  const program = await Program.prepare("(out (+ (int (arg 0)) 1))");
  const calls = async (count) => {
    for (let n = 0; n < count; n += 50) {
      const some = Array.from({ length: 50 }, (_, m) => program.run({ args: [n + m] }));
      for (const outcome of await Promise.all(some)) outcome.text;
    }
    globalThis.gc();
    // Finalizers of native objects run after the collection.
    await new Promise((resolve) => setTimeout(resolve, 50));
    globalThis.gc();
    return process.memoryUsage().rss;
  };
  // The heap of JavaScript and that of the allocator reach their size.
  const before = await calls(50_000);
  const after = await calls(100_000);
  assert(after - before < 16 << 20, `${before >> 20} MiB before, ${after >> 20} MiB after`);
});
