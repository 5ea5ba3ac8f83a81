// Measures one peer with one job, in a process of its own: `peer.mjs PEER JOB FOLDER SECONDS`, or
// `peer.mjs PEER live FOLDER COUNT` for the memory of live contexts. Prints a line of JSON.

import { readFileSync } from "node:fs";
import vm from "node:vm";

const MAX_SAMPLES = 20_000;
const MIN_SAMPLES = 5;

// The job of which contexts are kept alive.
const LIVE_JOB = "host";

const HOST_FUNCTIONS = {
  concat: (a, b) => a + b,
  upper: (s) => s.toUpperCase(),
  length: (s) => s.length,
};

// Returns a field of a file in /proc, in KiB.
function kib(path, key) {
  const line = readFileSync(path, "utf8").split("\n").find((line) => line.startsWith(key));
  return Number(line.split(/\s+/)[1]);
}
const peak = () => kib("/proc/self/status", "VmHWM:");
const current = () => kib("/proc/self/smaps_rollup", "Pss:");

const [peer, name, folder, bound] = process.argv.slice(2);
const isLive = name === "live";
const job = isLive ? LIVE_JOB : name;
const { inputs, expected } = JSON.parse(readFileSync(`${folder}/${job}.json`, "utf8"));
const program = readFileSync(new URL(`../jobs/js/${job}.js`, import.meta.url), "utf8");
const empty = peak();

const script = new vm.Script(program);
let runs = 0;

// Runs the program in a new context: a script that was compiled before, or a text that the engine
// has never seen.
function evaluate(text) {
  const context = vm.createContext({ ...HOST_FUNCTIONS, ...inputs });
  const result = (text === undefined ? script : new vm.Script(text)).runInContext(context);
  return { context, result };
}

function run() {
  runs += 1;
  const text = peer === "node-cold" ? `${program}// ${runs}` : undefined;
  const started = process.hrtime.bigint();
  const { result } = evaluate(text);
  return { time: Number(process.hrtime.bigint() - started), result };
}

function measure(seconds) {
  const first = run().result;
  if (first !== expected) throw new Error(`expected ${expected}, found ${first}`);
  let end = performance.now() + seconds * 100;
  while (performance.now() < end) run();
  const times = [];
  end = performance.now() + seconds * 1000;
  while (times.length < MIN_SAMPLES || (times.length < MAX_SAMPLES && performance.now() < end)) {
    times.push(run().time);
  }
  times.sort((a, b) => a - b);
  const percentile = (n) => times[Math.ceil((times.length * n) / 100) - 1];
  return {
    samples: times.length,
    p50: percentile(50),
    p95: percentile(95),
    p99: percentile(99),
    peak_kib: peak(),
    empty_kib: empty,
  };
}

// Keeps the contexts of ended programs.
function live(count) {
  const first = evaluate();
  const before = current();
  const alive = Array.from({ length: count }, () => evaluate());
  const kibEach = (current() - before) / count;
  return { kib_each: first && alive.length === count ? kibEach : null };
}

console.log(JSON.stringify(isLive ? live(Number(bound)) : measure(Number(bound))));
