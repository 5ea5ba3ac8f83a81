// Compares a warm call of a program with a warm call of other sandboxes for Node, in one run:
// `node bench.mjs [ROUNDS]`. Prints microseconds, as a table of Markdown. Every call adds 1 to a number
// that it gets as text, and returns the sum as text.

import vm from "node:vm";
import { getQuickJS } from "quickjs-emscripten";
import { Program, tool } from "wattle-agent";

const rounds = Number(process.argv[2] ?? 20_000);

const program = await Program.prepare("(out (+ (int (arg 0)) 1))");
const next = tool({
  name: "next",
  description: "Adds 1",
  input: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  run: ({ n }) => `${n + 1}`,
});
const calling = await Program.prepare("(out (next (int (arg 0))))", { tools: [next] });

const quickjs = await getQuickJS();
const context = quickjs.newContext();
const compiled = context.unwrapResult(context.evalCode("(n) => String(Number(n) + 1)"));
const script = new vm.Script("String(Number(n) + 1)");
const global = vm.createContext({ n: "0" });

const cases = {
  "wattle, `program.run`": async (n) => (await program.run({ args: [n] })).text,
  "wattle, with a call of a tool": async (n) => (await calling.run({ args: [n] })).text,
  "quickjs-emscripten, a function in one context": (n) => {
    const argument = context.newString(n);
    const result = context.unwrapResult(context.callFunction(compiled, context.undefined, argument));
    const text = context.getString(result);
    argument.dispose();
    result.dispose();
    return text;
  },
  "quickjs-emscripten, a new context": (n) => {
    const fresh = quickjs.newContext();
    const result = fresh.unwrapResult(fresh.evalCode(`String(Number(${JSON.stringify(n)}) + 1)`));
    const text = fresh.getString(result);
    result.dispose();
    fresh.dispose();
    return text;
  },
  "node:vm, a script in one context (no sandbox)": (n) => {
    global.n = n;
    return script.runInContext(global);
  },
  "node:vm, a new context (no sandbox)": (n) => script.runInContext(vm.createContext({ n })),
};

console.log("| a warm call | p50 µs | p99 µs |\n|---|---:|---:|");
for (const [name, call] of Object.entries(cases)) {
  const times = [];
  for (let n = 0; n < rounds * 1.1; n++) {
    const start = process.hrtime.bigint();
    const text = await call(String(n));
    const end = process.hrtime.bigint();
    if (text !== String(n + 1)) throw new Error(`${name}: ${text}`);
    // The first calls only warm up.
    if (n >= rounds * 0.1) times.push(Number(end - start) / 1000);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(times.length * share)].toFixed(1);
  console.log(`| ${name} | ${at(0.5)} | ${at(0.99)} |`);
}
compiled.dispose();
context.dispose();
