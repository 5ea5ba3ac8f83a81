// The life of a process: what keeps it alive, how it ends, workers, and the command line.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import { Worker } from "node:worker_threads";
import * as wattle from "wattle-agent";

const require = createRequire(import.meta.url);
const packageFile = require.resolve("wattle-agent/package.json");
const manifest = require(packageFile);
const bin = packageFile.replace("package.json", manifest.bin.wattle);
const here = new URL(".", import.meta.url);

/** Runs a script as a module, and returns its exit code, signal and output. */
async function script(source) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], { cwd: here });
  return ended(child);
}

async function ended(child) {
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (data) => (stdout += data));
  child.stderr.on("data", (data) => (stderr += data));
  const [code, signal] = await once(child, "close");
  return { code, signal, stdout, stderr };
}

const done = (result, stdout) => assert.deepEqual({ ...result, stderr: "" }, { code: 0, signal: null, stdout, stderr: "" }, result.stderr);

const forever = "(while 1 (let $x 1))";

test("a pending run keeps the process alive, and one that has ended does not", async () => {
  const source = `
    import { run } from "wattle-agent";
    const tools = [{ name: "wait", description: "Waits", run: async () => {
      await new Promise((resolve) => setTimeout(resolve, 50).unref());
      return "waited";
    } }];
    run("(out (wait))", { tools }).then((outcome) => console.log(outcome.text));
  `;
  done(await script(source), "waited\n");
});

test("a process that ends with runs does not crash", async () => {
  const source = `
    import { Agent, run } from "wattle-agent";
    import { createServer } from "node:http";
    for (let n = 0; n < 8; n++) run(${JSON.stringify(forever)}).catch(() => {});
    const wait = { name: "wait", description: "Waits", run: () => new Promise(() => {}) };
    run("(out (wait))", { tools: [wait] }).catch(() => {});
    const server = createServer(() => process.exit(0)).listen(0, "127.0.0.1", () => {
      const baseUrl = "http://127.0.0.1:" + server.address().port + "/v1";
      new Agent({ model: { name: "some", baseUrl } }).run("Wait.");
    });
  `;
  for (const result of await Promise.all([1, 2, 3].map(() => script(source)))) done(result, "");
});

test("an unhandled error of a run ends the process as any other error does", async () => {
  const result = await script('import { run } from "wattle-agent"; await run("(nothing)");');
  assert.equal(result.code, 1);
  assert.match(result.stderr, /InvalidProgramError/);
  assert.match(result.stderr, /unknown-/);
});

test("workers run programs and agents, also when they are terminated", async () => {
  const source = `
    const { parentPort } = require("node:worker_threads");
    const { run } = require("wattle-agent");
    const tools = [{ name: "here", description: "Says where", run: () => "in a worker" }];
    run("(out (here))", { tools }).then(({ text }) => {
      run(${JSON.stringify(forever)}).catch(() => {});
      parentPort.postMessage(text);
    });
  `;
  const workers = Array.from({ length: 3 }, () => new Worker(source, { eval: true }));
  const texts = await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]));
  assert.deepEqual(texts, ["in a worker", "in a worker", "in a worker"]);
  await Promise.all(workers.map((worker) => worker.terminate()));
  assert.equal((await wattle.run('(out "still here")')).text, "still here");
});

test("a worker may be the only one that loads the module", async () => {
  const source = `
    import { Worker } from "node:worker_threads";
    import { once } from "node:events";
    const code = new URL('data:text/javascript,import(${JSON.stringify(import.meta.resolve("wattle-agent"))})' +
      '.then(({ run }) => run("(out 1)")).then(({ text }) => console.log(text))');
    for (let n = 0; n < 3; n++) await once(new Worker(code), "exit");
  `;
  done(await script(source), "1\n1\n1\n");
});

test("the module is the same for import and require", () => {
  const required = require("wattle-agent");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(wattle).sort());
  assert.equal(required.WattleError, wattle.WattleError);
});

test("the declared names are those of the module", async () => {
  const declared = await readFile(packageFile.replace("package.json", "index.d.ts"), "utf8");
  const values = [...declared.matchAll(/^export (?:function|class) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(values.sort(), Object.keys(wattle).sort());
  for (const name of values) {
    const body = new RegExp(`^export class ${name}\\b[^]*?^}`, "m").exec(declared)?.[0];
    const { prototype } = wattle[name];
    if (body === undefined || wattle[name] === wattle.Catalog || prototype instanceof Error) continue;
    const members = [...body.matchAll(/^  (?:readonly )?(\[?[\w.]+\]?)[(:]/gm)].map(([, it]) => it);
    const own = Reflect.ownKeys(prototype)
      .filter((key) => key !== inspect.custom)
      .map((key) => (typeof key === "symbol" ? `[${symbolName(key)}]` : key));
    assert.deepEqual([...new Set([...members, "constructor"])].sort(), own.sort(), name);
  }
});

/** Node 20 describes the symbol of disposal by another name. */
const symbolName = (symbol) => symbol.description.replace(/^nodejs\./, "Symbol.");

test("all packages have the version of the workspace", async (t) => {
  const versions = Object.values(manifest.optionalDependencies);
  assert.deepEqual([...new Set([manifest.version, ...versions])].length, 1);
  const workspace = process.env.WORKSPACE_VERSION;
  if (workspace === undefined) return t.skip("needs the version of the workspace");
  assert.equal(manifest.version, workspace);
});

test("an unsupported platform gets an error that names the supported ones", () => {
  const native = require(packageFile.replace("package.json", "lib/native.js"));
  assert.throws(() => native.packageOf("darwin", "arm64"), /darwin-arm64.*Linux with glibc on x64 and arm64/);
  const missing = Object.assign(new Error("Cannot find module"), { code: "MODULE_NOT_FOUND" });
  assert.match(native.explain("wattle-agent-linux-x64-gnu", missing, true), /not installed.*optional/s);
  assert.match(native.explain("wattle-agent-linux-x64-gnu", missing, false), /Linux with glibc/);
  assert.match(native.explain("some", new Error("GLIBC_2.99"), true), /GLIBC_2\.99/);
});

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "wattle-"));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

const command = (args, options = {}) => spawn(process.execPath, [bin, ...args], options);

test("the command prints, fails and reads stdin as the binary does", async () => {
  const version = await ended(command(["--version"]));
  assert.equal(version.code, 0);
  assert(version.stdout.startsWith(`wattle ${manifest.version} `), version.stdout);
  const unknown = await ended(command(["no-such-command"]));
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /no-such-command/);
  const child = command(["exec", "-"]);
  child.stdin.end('(out "from stdin")');
  done(await ended(child), "from stdin\n");
  const { stdout } = await promisify(execFile)(process.execPath, [bin, "--help"]);
  assert.match(stdout, /demo/);
});

test("an interrupt ends the command as it ends the binary", async (t) => {
  const cwd = await folder(t);
  const child = command(["exec", "--write", "-"], { cwd });
  child.stdin.end(`(fs.write "started" "yes") ${forever}`);
  while (!existsSync(join(cwd, "started"))) await setTimeout(10);
  child.kill("SIGINT");
  const { code, signal } = await ended(child);
  assert.deepEqual([code, signal], [130, null]);
});

test("the command starts itself again, for an editor outside of its walls", async (t) => {
  const cwd = await folder(t);
  const editor = "#!/bin/sh\necho '(ret (str.upper \"edited\"))' > \"$1\"\n";
  await writeFile(join(cwd, "editor"), editor, { mode: 0o755 });
  const output = await session(cwd, { EDITOR: join(cwd, "editor") }, [
    ["›", "/edit\r"],
    ["edited", "\r"],
    ["EDITED", ""],
    ["›", "\x04"],
  ]);
  assert.match(output, /EDITED/);
});

test("the session reads a terminal, and gives it back", async (t) => {
  const output = await session(await folder(t), {}, [
    ["›", '(ret (str.upper "typed"))\r'],
    ["TYPED", ""],
    ["›", "\x04"],
  ]);
  assert.match(output, /TYPED/);
  assert.match(output, /the same terminal/);
});

/**
 * Runs a session of the command on a terminal, and returns what it shows. Each pair is a text for which
 * the test waits, and what it then types.
 */
async function session(cwd, env, steps) {
  await writeFile(join(cwd, "empty.jsonl"), '{"wattle_cassette": 1, "model": "recorded"}\n');
  const shell =
    'stty -a > before; "$NODE" "$BIN" repl --cassette empty.jsonl; ' +
    'stty -a | cmp - before && echo "the same terminal"';
  const child = spawn("script", ["-qec", shell, "/dev/null"], {
    cwd,
    env: { ...process.env, NODE: process.execPath, BIN: bin, TERM: "xterm", HOME: cwd, ...env },
  });
  let [output, read] = ["", 0];
  child.stdout.on("data", (data) => {
    output += data;
    while (steps.length > 0) {
      const [text, typed] = steps[0];
      const at = output.indexOf(text, read);
      if (at < 0) break;
      read = at + text.length;
      steps.shift();
      child.stdin.write(typed);
    }
  });
  await once(child, "close");
  return output;
}
