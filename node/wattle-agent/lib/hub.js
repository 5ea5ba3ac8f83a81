"use strict";
// The operations of this thread's native module, and the functions that it calls.

const { AsyncLocalStorage } = require("node:async_hooks");
const { load } = require("./native.js");
const { CancelledError, errorOf, native, settingsError } = require("./errors.js");

const bindings = load();

/** The operations that have not ended, by number. */
const operations = new Map();
/** The runs that have functions, by number. */
const runs = new Map();
/** The calls of tools that have not returned, by the number of the question. */
const calls = new Map();

let last = 0;

// The event loop of this thread lives as long as it has operations.
const alive = setInterval(() => {}, 2 ** 31 - 1);
alive.unref();

/** What the native module reports or asks, by the kind of the message. */
const receivers = [
  (number, text, object) => end(number, { value: object ?? text }),
  (number, text, object, report) => end(number, { error: JSON.parse(text), object, report }),
  (number, text) => answer(number, JSON.parse(text), callTool),
  (number, text) => answer(number, JSON.parse(text), askApproval),
  (question) => calls.get(question)?.abandon(),
];

const hub = new bindings.Hub((kind, number, text, object, report) => {
  receivers[kind](number, text, object, report);
});

function end(number, ended) {
  const resolve = operations.get(number);
  operations.delete(number);
  if (operations.size === 0) alive.unref();
  resolve(ended);
}

/** Starts an operation of the native module, and waits for its end. */
async function operation(start) {
  const ended = await new Promise((resolve) => {
    const number = ++last;
    native(() => start(hub, number));
    if (operations.size === 0) alive.ref();
    operations.set(number, resolve);
  });
  // Thrown here, so that the stack shows the caller.
  if (ended.error !== undefined) {
    throw errorOf(ended.error, { outcome: ended.object, report: ended.report });
  }
  return ended.value;
}

/** Gives a run a number, by which the native module finds its functions until `endRun`. */
function startRun(functions) {
  const number = ++last;
  runs.set(number, { ...functions, within: AsyncLocalStorage.snapshot() });
  return number;
}

function endRun(number) {
  runs.delete(number);
}

/** Calls a function for a question of the native module, and passes its result on. */
async function answer(number, asked, call) {
  const run = runs.get(number);
  try {
    if (run === undefined) throw new Error("the run has ended");
    const result = await run.within(() => call(run, asked));
    hub.answer(asked.question, true, JSON.stringify(result) ?? "null");
  } catch (thrown) {
    hub.answer(asked.question, false, textOf(thrown));
  } finally {
    calls.delete(asked.question);
  }
}

async function callTool(run, { question, tool: name, arguments: input }) {
  const tool = run.tools.get(name);
  const context = new ToolContext(run.context);
  calls.set(question, context);
  return tool.call(input, context);
}

function askApproval(run, { request }) {
  return run.approve(request);
}

/** What a tool gets besides its arguments. */
class ToolContext {
  #abort;

  constructor(context) {
    this.context = context;
  }

  /** Aborted when the result is no longer awaited: after the timeout, or if the run is cancelled. */
  get signal() {
    this.#abort ??= new AbortController();
    return this.#abort.signal;
  }

  abandon() {
    this.#abort ??= new AbortController();
    this.#abort.abort(new Error("the result of the tool is no longer awaited"));
  }
}

function textOf(thrown) {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.name === "Error" ? thrown.message : `${thrown.name}: ${thrown.message}`;
}

/** Cancels a run when the signal is aborted. Returns a function that stops this. */
function follow(signal, cancel) {
  if (signal === undefined) return () => {};
  if (!(signal instanceof AbortSignal)) throw settingsError("signal: expected an AbortSignal");
  if (signal.aborted) {
    const fields = { kind: "cancelled", code: "ECANCEL", reason: textOf(signal.reason) };
    throw new CancelledError(fields, { cause: signal.reason });
  }
  const abort = () => cancel.cancel(textOf(signal.reason));
  signal.addEventListener("abort", abort, { once: true });
  return () => signal.removeEventListener("abort", abort);
}

/** Returns the error, with the reason of the signal if that has cancelled the run. */
function withReason(error, signal) {
  if (signal?.aborted && error instanceof CancelledError) error.cause = signal.reason;
  return error;
}

module.exports = { bindings, hub, operation, startRun, endRun, follow, withReason };
