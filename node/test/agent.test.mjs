import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  Agent,
  CancelledError,
  ParkedError,
  RunFailedError,
  SettingsError,
  tool,
} from "wattle-agent";
import { z } from "zod";
import { program, provider, response } from "./provider.mjs";

const weather = tool({
  name: "weather",
  description: "Returns the weather in a city",
  input: z.object({ city: z.string() }),
  run: ({ city }, { context }) => `${city}: 7 degrees${context ? ` for ${context.user}` : ""}`,
});

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "wattle-"));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

/** Collects the events of a stream. */
async function events(stream) {
  const all = [];
  for await (const event of stream) all.push(event);
  return all;
}

test("an agent calls a tool and answers", async (t) => {
  const endpoint = await provider(t, program('(out (weather "Oslo"))'), response("It is cold."));
  const agent = new Agent({ model: endpoint.model, prompt: "Be brief.", tools: [weather] });
  const report = await agent.run("How is Oslo?", { context: { user: "Ada" } });
  assert.equal(report.output, "It is cold.");
  assert.equal(report.status, "completed");
  assert.equal(report.stop, "answered");
  assert.deepEqual(
    report.modelCalls.map((it) => it.calls.map(({ name, success }) => [name, success])),
    [[["wat", true]], []],
  );
  const [first, second] = endpoint.requests;
  assert.equal(first.headers.authorization, "Bearer a-key");
  assert.match(first.body.messages[0].content, /Be brief\./);
  assert.match(first.body.messages[0].content, /weather/);
  assert.match(second.body.messages.at(-1).content, /Oslo: 7 degrees for Ada/);
});

test("a history continues a conversation", async (t) => {
  const endpoint = await provider(t, response("Hello, Ada."), response("You are Ada."));
  const agent = new Agent({ model: endpoint.model });
  const { messages } = await agent.run("I am Ada.");
  const { output } = await agent.run("Who am I?", { history: messages, session: "s" });
  assert.equal(output, "You are Ada.");
  const sent = endpoint.requests[1].body.messages.map((it) => it.content).join("\n");
  assert.match(sent, /I am Ada\./);
  await assert.rejects(agent.run("Who?", { history: [{ role: "nobody" }] }), /history is invalid/);
});

test("an answer is parsed by its schema, after a correction", async (t) => {
  const endpoint = await provider(t, '{"n": "one"}', '{"n": 1, "when": "2026-01-01"}');
  const output = z.object({ n: z.number(), when: z.string().transform((text) => new Date(text)) });
  const agent = new Agent({ model: endpoint.model, output });
  const report = await agent.run("Count.");
  assert.deepEqual(report.output, { n: 1, when: new Date("2026-01-01") });
  assert.equal(report.modelCalls.length, 2);

  const other = await provider(t, '{"n": 1}');
  const json = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  assert.deepEqual((await new Agent({ model: other.model, output: json }).run("Count.")).output, { n: 1 });

  const refined = z.object({ n: z.number().refine((n) => n > 5, "is too small") });
  const error = await new Agent({ model: other.model, output: refined }).run("Count.").catch((it) => it);
  assert(error instanceof RunFailedError);
  assert.match(error.reason, /n: is too small/);
});

test("a stream has the events and the pieces of the answer", async (t) => {
  const endpoint = await provider(t, program("(out (+ 1 2))"), response("The sum is three."));
  const agent = new Agent({ model: endpoint.model });
  const stream = agent.stream("Add.");
  assert.equal(stream.runId, undefined);
  const all = await events(stream);
  const types = all.map((event) => event.type);
  assert.equal(types[0], "run_started");
  assert.equal(types.at(-1), "run_ended");
  const ended = all.find((event) => event.type === "call_ended");
  assert.deepEqual([ended.name, ended.success, ended.modelCall], ["wat", true, 1]);
  assert.match(ended.output, /3/);
  const isVoid = all.findLastIndex((event) => event.type === "void");
  const pieces = all.slice(isVoid + 1).filter((event) => event.type === "answer");
  assert.equal(pieces.map((event) => event.text).join(""), "The sum is three.");
  const report = await stream.result();
  assert.equal(report.output, "The sum is three.");
  assert.equal(stream.runId, report.runId);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
});

test("leaving the loop cancels the run", async (t) => {
  let asked, closed;
  const requested = new Promise((resolve) => (asked = resolve));
  const gone = new Promise((resolve) => (closed = resolve));
  const endpoint = await provider(t, (_, response) => {
    response.on("close", closed);
    asked();
  });
  const agent = new Agent({ model: endpoint.model });
  const stream = agent.stream("Wait.");
  for await (const event of stream) {
    if (event.type !== "model_call_started") continue;
    await requested;
    break;
  }
  await gone;
  const error = await stream.result().catch((error) => error);
  assert(error instanceof CancelledError);
  assert.equal(error.report.status, "cancelled");
});

test("a stream that is closed before its start never runs", async (t) => {
  const endpoint = await provider(t, response("unasked"));
  const stream = new Agent({ model: endpoint.model }).stream("Wait.");
  await stream[Symbol.asyncDispose]();
  await assert.rejects(stream.result(), CancelledError);
  assert.equal(endpoint.requests.length, 0);
});

test("a signal cancels a run, also while its model or its tool is awaited", async (t) => {
  let asked;
  const request = new Promise((resolve) => (asked = resolve));
  const endpoint = await provider(t, () => asked());
  const controller = new AbortController();
  const running = new Agent({ model: endpoint.model }).run("Wait.", { signal: controller.signal });
  await request;
  controller.abort(new Error("the user left"));
  const error = await running.catch((error) => error);
  assert(error instanceof CancelledError);
  assert.equal(error.cause, controller.signal.reason);
  assert.equal(error.report.abortReason, "the user left");

  const other = await provider(t, program("(out (hang))"));
  const second = new AbortController();
  let aborted;
  const stopped = new Promise((resolve) => (aborted = resolve));
  const hang = {
    name: "hang",
    description: "Never returns",
    run(_, { signal }) {
      signal.addEventListener("abort", aborted);
      second.abort();
      return new Promise(() => {});
    },
  };
  const agent = new Agent({ model: other.model, tools: [hang] });
  await assert.rejects(agent.run("Hang.", { signal: second.signal }), { name: "AbortError" });
  await stopped;
});

test("a tool that throws is reported to the model", async (t) => {
  const failing = {
    name: "take_pen",
    description: "Fails",
    run() {
      throw new RangeError("out of pens");
    },
  };
  const endpoint = await provider(t, program("(out (take_pen))"), response("There are no pens."));
  const agent = new Agent({ model: endpoint.model, tools: [failing] });
  assert.equal((await agent.run("Take a pen.")).output, "There are no pens.");
  const told = endpoint.requests[1].body.messages.at(-1).content;
  assert.match(told, /EREMOTE/);
  assert.match(told, /RangeError: out of pens/);
});

test("a tool may run an agent", async (t) => {
  const inner = await provider(t, response("inner answer"));
  const outer = await provider(t, program('(out (ask "it"))'), response("done"));
  const helper = new Agent({ model: inner.model });
  const ask = tool({
    name: "ask",
    description: "Asks another agent",
    input: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    run: async ({ what }) => (await helper.run(what)).output,
  });
  const agent = new Agent({ model: outer.model, tools: [ask] });
  assert.equal((await agent.run("Ask.")).output, "done");
  assert.match(outer.requests[1].body.messages.at(-1).content, /inner answer/);
});

test("a failed model is an error with its report, also at the end of the events", async (t) => {
  const refuse = (_, response) => {
    response.statusCode = 401;
    response.end('{"error": {"message": "the key is wrong"}}');
  };
  const endpoint = await provider(t, refuse);
  const agent = new Agent({ model: endpoint.model });
  const error = await agent.run("Hello.").catch((error) => error);
  assert(error instanceof RunFailedError);
  assert.match(error.reason, /401|key/);
  assert.equal(error.report.status, "failed");
  assert.equal("output" in error.report, false);
  await assert.rejects(events(agent.stream("Hello.")), RunFailedError);
});

test("approvals are answered by a function, and denials are reported to the model", async (t) => {
  const write = program('(fs.write "a.txt" "x") (out "written")');
  const grants = { ask: ["write:*"] };
  for (const [answer, told] of [
    [true, /written/],
    ["not on Sundays", /not on Sundays/],
  ]) {
    const endpoint = await provider(t, write, response("done"));
    const asked = [];
    const approve = async (request) => {
      asked.push(...request.questions.map((question) => question.function));
      return answer;
    };
    const agent = new Agent({ model: endpoint.model, grants, approve });
    assert.equal((await agent.run("Write.")).output, "done");
    assert.deepEqual(asked, ["fs.write"]);
    assert.match(endpoint.requests[1].body.messages.at(-1).content, told);
  }
});

test("a run that waits for an approval is resumed from its store", async (t) => {
  const store = join(await folder(t), "runs");
  const write = program('(fs.write "a.txt" "x") (out "written")');
  const endpoint = await provider(t, write, response("done"));
  const options = { name: "writer", model: endpoint.model, grants: { ask: ["write:*"] }, store };
  const first = new Agent({ ...options, approve: () => "later" });
  assert.equal(first.name, "writer");
  const parked = await first.run("Write.").catch((error) => error);
  await first.close();
  assert(parked instanceof ParkedError, String(parked));
  assert.equal(parked.report.status, "parked");
  const [{ call, question }] = parked.report.pending;
  assert.match(question, /a\.txt/);

  const agent = new Agent(options);
  const { runId } = parked.report;
  await assert.rejects(agent.resume(runId, { answers: { [call]: "later" } }).result(), SettingsError);
  const resumed = agent.resume(runId, { answers: { [call]: true } });
  assert.equal((await resumed.result()).output, "done");
  assert.equal(endpoint.requests.length, 2);
  await agent[Symbol.asyncDispose]();
});

test("a recording replaces the model", async (t) => {
  const path = join(await folder(t), "recording.jsonl");
  const lines = [{ wattle_cassette: 1, model: "recorded" }, { reply: response("recorded") }];
  await writeFile(path, lines.map((line) => JSON.stringify(line)).join("\n") + "\n");
  const agent = new Agent({ model: { cassette: path } });
  assert.equal((await agent.run("Play.")).output, "recorded");
  await assert.rejects(agent.run("Play on."), RunFailedError);
});

test("an invalid option is an error when the agent is created", () => {
  const model = { name: "some", baseUrl: "http://127.0.0.1:1/v1" };
  assert.throws(() => new Agent({ model, tool: [] }), /unknown option `tool`.*`tools`/);
  assert.throws(() => new Agent({}), SettingsError);
  assert.throws(() => new Agent({ model: { cassette: "missing.jsonl" } }), /missing\.jsonl/);
  assert.throws(() => new Agent({ model, temperature: 3 }), /temperature/);
  assert.throws(() => new Agent({ model, maxSteps: "many" }), SettingsError);
  assert.throws(() => new Agent({ model, output: { type: 1 } }), SettingsError);
  assert.throws(() => new Agent({ model, programs: ["no_such_program"] }), /no_such_program/);
});
