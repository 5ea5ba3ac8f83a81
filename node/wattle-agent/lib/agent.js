"use strict";
// Agents, their runs, and the events of the runs.

const { bindings, hub, operation, startRun, endRun, follow, withReason } = require("./hub.js");
const { CancelledError, RunFailedError, WattleError, checkOptions, checkString, native } = require("./errors.js");
const { Scope } = require("./scope.js");
const { jsonSchema, validated } = require("./schema.js");
const { camelCased } = require("./names.js");

const OPTIONS = [
  "name",
  "model",
  "prompt",
  "tools",
  "output",
  "catalog",
  "programs",
  "memory",
  "grants",
  "store",
  "traces",
  "maxSteps",
  "timeout",
  "maxTokens",
  "maxAnswerTokens",
  "temperature",
  "approve",
];
const MODEL_OPTIONS = ["name", "baseUrl", "apiKey", "cassette"];
const RUN_OPTIONS = ["signal", "history", "session", "context", "approve"];

/** An agent. Its runs are independent of each other. */
class Agent {
  #handle;
  #scope;
  #output;
  #approve;

  constructor(options) {
    checkOptions(options, OPTIONS, "Agent");
    this.#scope = Scope.of(options);
    this.#output = options.output;
    this.#approve = options.approve;
    const settings = JSON.stringify(settingsOf(options));
    this.#handle = native(() => new bindings.AgentHandle(settings, this.#scope.handle));
  }

  /** The agent's name, which identifies its runs in the store. */
  get name() {
    return native(() => this.#handle.name);
  }

  /** Runs the agent until it has an answer. */
  async run(message, options = {}) {
    return this.stream(message, options).result();
  }

  /** Returns a run with its events. It starts when the first event or the result is read. */
  stream(message, options = {}) {
    checkString(message, "message");
    return this.#stream(options, (hub, json, cancel) =>
      this.#handle.start(hub, message, json, cancel),
    );
  }

  /** Resumes a run that waits for approvals, or whose process ended. */
  resume(id, { answers = {}, ...options } = {}) {
    return this.#stream(options, (hub, json, cancel) =>
      this.#handle.resume(hub, id, JSON.stringify(answers), json, cancel),
    );
  }

  #stream(options, start) {
    checkOptions(options, RUN_OPTIONS, "run");
    const { approve = this.#approve } = options;
    const functions = { tools: this.#scope.tools, approve, context: options.context };
    return new AgentStream(start, options, functions, this.#output);
  }

  /** Closes the agent's store, so that another process can resume its runs at once. */
  async close() {
    await operation((hub, number) => this.#handle.close(hub, number));
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

function settingsOf(options) {
  let { model } = options;
  if (typeof model === "string") model = { name: model };
  checkOptions(model ?? null, MODEL_OPTIONS, "Agent: model");
  const { timeout, output } = options;
  return {
    name: options.name,
    model: {
      name: model.name,
      base_url: model.baseUrl,
      api_key: model.apiKey,
      cassette: model.cassette,
    },
    prompt: options.prompt,
    output: output && jsonSchema(output, "input", "Agent: output"),
    programs: options.programs,
    memory: options.memory,
    grants: options.grants,
    store: options.store,
    traces: options.traces,
    max_steps: options.maxSteps,
    timeout: timeout === undefined ? undefined : timeout / 1000,
    max_tokens: options.maxTokens,
    max_answer_tokens: options.maxAnswerTokens,
    temperature: options.temperature,
  };
}

/** Forgets the functions of a run whose stream the application has lost. */
const lost = new FinalizationRegistry(endRun);

/** A run of an agent, as its events. */
class AgentStream {
  #start;
  #options;
  #functions;
  #output;
  #cancel = new bindings.CancelHandle();
  #handle;
  #run;
  #unfollow = () => {};
  #report;
  #isClosed = false;

  constructor(start, options, functions, output) {
    this.#start = start;
    this.#options = options;
    this.#functions = functions;
    this.#output = output;
  }

  /** The run's id, once it has started. */
  get runId() {
    return this.#handle?.id;
  }

  /** Waits for the end of the run, and returns its report. Events that were not read are lost. */
  result() {
    return (this.#report ??= this.#finish());
  }

  /** Cancels the run. */
  cancel(reason = "") {
    this.#cancel.cancel(reason);
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next() {
    if (this.#isClosed) return { value: undefined, done: true };
    if (this.#report === undefined) {
      this.#begin();
      const event = await operation((hub, number) => this.#handle.next(hub, number));
      if (typeof event === "string") {
        return { value: camelCased(JSON.parse(event)), done: false };
      }
    }
    await this.result();
    return { value: undefined, done: true };
  }

  /** Cancels the run, and waits for its end. `for await` does this if the loop is left early. */
  async return(value) {
    this.#isClosed = true;
    this.cancel("the events are no longer read");
    // A run that has not started never will.
    if (this.#handle === undefined) this.#report ??= Promise.reject(closed());
    await this.result().catch(() => {});
    return { value, done: true };
  }

  async [Symbol.asyncDispose]() {
    await this.return();
  }

  #begin() {
    if (this.#handle !== undefined) return;
    const { history, session } = this.#options;
    const { approve } = this.#functions;
    this.#unfollow = follow(this.#options.signal, this.#cancel);
    const run = startRun(this.#functions);
    const json = JSON.stringify({ run, approve: approve !== undefined, history, session });
    try {
      this.#handle = native(() => this.#start(hub, json, this.#cancel));
    } catch (error) {
      this.#unfollow();
      endRun(run);
      throw error;
    }
    this.#run = run;
    lost.register(this, run);
  }

  async #finish() {
    try {
      this.#begin();
      const json = await operation((hub, number) => this.#handle.result(hub, number));
      const { data, ...report } = camelCased(JSON.parse(json));
      return { ...report, output: await outputOf(this.#output, data, report) };
    } catch (error) {
      if (error instanceof WattleError && typeof error.report === "string") {
        const { data: _, ...report } = camelCased(JSON.parse(error.report));
        error.report = report;
      }
      throw withReason(error, this.#options.signal);
    } finally {
      this.#unfollow();
      endRun(this.#run);
    }
  }
}

function closed() {
  const reason = "the stream was closed before its run started";
  return new CancelledError({ kind: "cancelled", code: "ECANCEL", reason });
}

/** Converts the answer by the schema of the output. */
async function outputOf(schema, data, report) {
  try {
    return await validated(schema, data);
  } catch (cause) {
    const reason = `the answer does not satisfy the output schema: ${cause.message}`;
    const fields = { kind: "run-failed", code: "invalid_output", reason };
    throw new RunFailedError(fields, { report, cause });
  }
}

module.exports = { Agent, AgentStream };
