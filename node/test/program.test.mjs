import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import {
  CancelledError,
  Catalog,
  DeniedError,
  InvalidProgramError,
  Program,
  ProgramFailedError,
  SettingsError,
  WattleError,
  check,
  run,
  tool,
} from "wattle-agent";
import { z } from "zod";

const forever = "(while 1 (let $x 1))";

/** Creates a folder that is deleted after the test. */
async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "wattle-"));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

test("a program prints its results", async () => {
  const outcome = await run('(out "{} {}" (arg 0) (arg 1)) (out 2)', { args: ["a", { b: [1] }] });
  assert.equal(outcome.text, 'a {"b":[1]}\n2');
  assert.deepEqual(outcome.results, ['a {"b":[1]}', "2"]);
  assert(outcome.fuel >= 0 && outcome.memoryBytes > 0 && outcome.durationMs > 0);
  assert.deepEqual((await run('(out (json.parse "[1]"))')).json(), [1]);
});

test("a prepared program runs any number of times, also at once", async () => {
  const program = await Program.prepare("(out (* (int (arg 0)) 2))");
  assert.equal(program.source, "(out (* (int (arg 0)) 2))");
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  const outcomes = await Promise.all(numbers.map((n) => program.run({ args: [n] })));
  assert.deepEqual(outcomes.map((it) => it.json()), numbers.map((n) => n * 2));
});

test("an error of the compiler has its position", async () => {
  const error = await run("(out 1)\n  (nothing 2)").catch((error) => error);
  assert(error instanceof InvalidProgramError && error instanceof WattleError);
  assert.equal(error.kind, "invalid-program");
  assert.deepEqual([error.line, error.column], [2, 4]);
  assert.match(error.reason, /nothing/);
  assert.match(error.stack, /program\.test\.mjs/);
});

test("a program that fails has a code, a position and its outcome", async () => {
  const failing = '(out "before")\n(out (fs.read "missing.txt"))';
  const error = await run(failing).catch((error) => error);
  assert(error instanceof ProgramFailedError);
  assert.deepEqual([error.code, error.line, error.function], ["ENOENT", 2, "fs.read"]);
  assert.equal(error.outcome.text, "before");
});

test("a check reports diagnostics and what a program touches", async () => {
  const report = await check('(out (fs.read "a.txt"))');
  assert.equal(report.ok, true);
  assert.deepEqual(report.touches.reads, ["a.txt"]);
  const invalid = await check("(out (nothing))");
  assert.equal(invalid.ok, false);
  assert.equal(invalid.diagnostics[0].severity, "error");
  assert.equal(invalid.diagnostics[0].line, 1);
});

test("the catalog lists, finds and runs programs, also those of a folder", async (t) => {
  const catalog = new Catalog();
  const names = catalog.list().map((program) => program.name);
  assert(names.includes("text_count"));
  assert.deepEqual(names, names.toSorted());
  assert(catalog.search("count words").some((program) => program.name === "text_count"));
  assert.match(catalog.get("text_count").manual, /text_count/);
  assert.equal(catalog.get("missing"), undefined);

  const path = await folder(t);
  const source = [
    ';;; name = "twice"',
    ';;; description = "Doubles a number"',
    ";;; [[args]]",
    ';;; name = "n"',
    ';;; type_hint = "int"',
    ';;; description = "The number"',
    "(ret (* (int (arg 0)) 2))",
    "",
  ].join("\n");
  await writeFile(join(path, "twice.wat"), source);
  const own = new Catalog([path]);
  const twice = await Program.named("twice", { catalog: own });
  assert.equal((await twice.run({ args: [21] })).text, "42");
  await assert.rejects(Program.named("twice"), /no program `twice`/);
  assert.equal((await run("(out (twice 4))", { catalog: own })).text, "8");
});

test("files are read, changed in memory, and applied", async (t) => {
  const path = await folder(t);
  await writeFile(join(path, "a.txt"), "old");
  const source = '(out (fs.read "a.txt")) (fs.write "a.txt" "new") (fs.write "b.txt" "more")';
  const outcome = await run(source, { grants: { files: path } });
  assert.equal(outcome.text, "old");
  assert.deepEqual(
    (await outcome.changes()).map(({ path, kind }) => [path, kind]),
    [
      ["a.txt", "modified"],
      ["b.txt", "created"],
    ],
  );
  assert.equal(Buffer.from(await outcome.file("a.txt")).toString(), "new");
  assert.equal(await readFile(join(path, "a.txt"), "utf8"), "old");
  await outcome.apply();
  assert.equal(await readFile(join(path, "a.txt"), "utf8"), "new");
  await assert.rejects(outcome.file("c.txt"), WattleError);

  const granted = { files: { path, write: true } };
  await run('(fs.write "c.txt" "direct")', { grants: granted });
  assert.equal(await readFile(join(path, "c.txt"), "utf8"), "direct");
});

test("hosts and variables are granted by name", async (t) => {
  const server = createServer((_, response) => response.end("pong"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const host = `127.0.0.1:${server.address().port}`;
  const source = `(out (http.get "http://${host}/"))`;
  await assert.rejects(run(source), DeniedError);
  const outcome = await run(source, { grants: { hosts: [host] } });
  assert.equal(outcome.text, "pong");
  const variable = await run('(out (kv.get "tenant:city"))', { grants: { variables: { city: "Oslo" } } });
  assert.equal(variable.text, "Oslo");
});

test("a rule asks the application, whose answer counts", async () => {
  const source = '(fs.write "a.txt" "x") (out "written")';
  const grants = { ask: ["write:*"] };
  const asked = [];
  const approve = (answer) => async (request) => {
    asked.push(request.questions[0].function);
    return answer;
  };
  assert.equal((await run(source, { grants, approve: approve(true) })).text, "written");
  const denied = await run(source, { grants, approve: approve("not today") }).catch((it) => it);
  assert(denied instanceof DeniedError, String(denied));
  assert.match(denied.reason, /not today/);
  assert.deepEqual(asked, ["fs.write", "fs.write"]);
  await assert.rejects(run(source, { grants }), DeniedError);
  const throwing = () => {
    throw new Error("nobody is here");
  };
  await assert.rejects(run(source, { grants, approve: throwing }), /nobody is here/);
});

test("tools are functions, sync or async, with checked arguments", async () => {
  const seen = [];
  const tools = [
    tool({
      name: "add",
      description: "Adds two numbers",
      input: {
        type: "object",
        properties: { a: { type: "integer" }, b: { type: "integer" } },
        required: ["a", "b"],
      },
      run: ({ a, b }, { context }) => (seen.push(context), `${a + b}`),
    }),
    tool({
      name: "user",
      description: "Finds a user",
      input: z.object({ id: z.coerce.number().int().refine((n) => n > 0, "is not positive"), name: z.string().default("Ada") }),
      output: z.object({ id: z.number(), name: z.string() }),
      run: async ({ id, name }) => ({ id, name }),
    }),
    tool({ name: "nothing", description: "Returns nothing", run() {} }),
  ];
  const source = '(let $u (user 7)) (out (add 1 2) $u.id) (out $u.name) (out (nothing))';
  const outcome = await run(source, { tools, context: { user: 1 } });
  assert.match(outcome.text, /^3 7\nAda\n/);
  assert.deepEqual(seen, [{ user: 1 }]);
  await assert.rejects(run('(out (add "one" 2))', { tools }), WattleError);
  const refined = await run("(out (user 0))", { tools }).catch((error) => error);
  assert.equal(refined.code, "EREMOTE");
  assert.match(refined.reason, /id: is not positive/);
});

test("a function that throws is EREMOTE with its text, which a program can handle", async () => {
  const thrown = { TypeError: new TypeError("no number"), text: "only text", null: null };
  const tools = [
    {
      name: "break_it",
      description: "Throws",
      input: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
      run: ({ what }) => {
        throw thrown[what];
      },
    },
    { name: "cycle", description: "Returns no JSON", run: () => 1n },
  ];
  for (const [what, text] of [
    ["TypeError", /TypeError: no number/],
    ["text", /only text/],
    ["null", /null/],
  ]) {
    const error = await run(`(out 1)\n(out (break_it "${what}"))`, { tools }).catch((error) => error);
    assert(error instanceof ProgramFailedError);
    assert.deepEqual([error.code, error.line], ["EREMOTE", 2]);
    assert.match(error.reason, text);
  }
  assert.equal((await run("(out (cycle))", { tools }).catch((error) => error)).code, "EREMOTE");
});

test("a function that never returns is bounded by its timeout", async () => {
  let resolve;
  const aborted = new Promise((it) => (resolve = it));
  const tools = [
    {
      name: "wait",
      description: "Never returns",
      timeout: 50,
      run: (_, { signal }) => {
        signal.addEventListener("abort", resolve);
        return new Promise(() => {});
      },
    },
  ];
  const error = await run("(out (wait))", { tools }).catch((error) => error);
  assert(error instanceof ProgramFailedError);
  assert.equal(error.code, "ETIME");
  await aborted;
});

test("a tool may run programs itself, and sees the caller's context of async calls", async () => {
  const storage = new AsyncLocalStorage();
  const inner = await Program.prepare("(out (* (int (arg 0)) 10))");
  const tools = [
    {
      name: "nested",
      description: "Runs a program",
      input: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
      run: async ({ n }) => `${(await inner.run({ args: [n] })).text} ${storage.getStore()}`,
    },
  ];
  const program = await Program.prepare("(out (nested (int (arg 0))))", { tools });
  const one = (n) => storage.run(`of ${n}`, () => program.run({ args: [n] }));
  const outcomes = await Promise.all([1, 2, 3].map(one));
  assert.deepEqual(outcomes.map((it) => it.text), ["10 of 1", "20 of 2", "30 of 3"]);
});

test("runs do not block the event loop, and are bounded by a timeout", async () => {
  const program = await Program.prepare(forever);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  const error = await program.run({ timeout: 300 }).catch((error) => error);
  clearInterval(timer);
  assert(error instanceof ProgramFailedError);
  assert(ticks >= 3, `${ticks}`);
});

test("a signal cancels a run", async () => {
  const program = await Program.prepare(forever);
  const controller = new AbortController();
  const running = program.run({ signal: controller.signal });
  setTimeout(() => controller.abort(new Error("the user left")), 20);
  const error = await running.catch((error) => error);
  assert(error instanceof CancelledError);
  assert.equal(error.name, "AbortError");
  assert.match(error.reason, /the user left/);
  assert.equal(error.cause, controller.signal.reason);
  await assert.rejects(program.run({ signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("an invalid option is an error that lists the valid ones", async () => {
  await assert.rejects(run("(out 1)", { arg: [] }), /unknown option `arg`.*`args`/);
  await assert.rejects(run("(out 1)", { grants: { file: "." } }), SettingsError);
  await assert.rejects(run("(out 1)", { grants: { hosts: ["a b"] } }), /grants\.hosts/);
  await assert.rejects(run("(out 1)", { timeout: -1, args: [] }), /timeout/);
  await assert.rejects(run(1), /source: expected a string/);
  await assert.rejects(run("(out 1)", { args: "one" }), /args: expected an array/);
  const noRun = [{ name: "a", description: "A tool" }];
  await assert.rejects(run("(out 1)", { tools: noRun }), /`run` must be a function/);
  const taken = [{ name: "text_count", description: "Takes a name", run: () => 1 }];
  await assert.rejects(run("(out 1)", { tools: taken }), /taken/);
  const twice = [1, 2].map(() => ({ name: "one", description: "A tool", run: () => 1 }));
  await assert.rejects(run("(out 1)", { tools: twice }), /taken/);
  assert.throws(() => new Program(), SettingsError);
});
