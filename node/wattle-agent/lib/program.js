"use strict";
// Programs that run without a model.

const { inspect } = require("node:util");
const { bindings, operation, startRun, endRun, follow, withReason } = require("./hub.js");
const { WattleError, checkOptions, checkString, native, settingsError } = require("./errors.js");
const { Scope } = require("./scope.js");
const { camelCased } = require("./names.js");

const PREPARE_OPTIONS = ["tools", "catalog"];
const RUN_OPTIONS = ["args", "grants", "timeout", "approve", "signal", "context"];

/** A program that was prepared once and runs any number of times. */
class Program {
  #handle;
  #tools;

  constructor(handle, tools) {
    if (!(handle instanceof bindings.ProgramHandle)) {
      throw settingsError("use Program.prepare to create a program");
    }
    this.#handle = handle;
    this.#tools = tools;
  }

  /** Compiles a program. */
  static async prepare(source, options = {}) {
    checkString(source, "source");
    checkOptions(options, PREPARE_OPTIONS, "Program.prepare");
    const { handle, tools } = Scope.of(options);
    return new Program(await operation((hub, it) => handle.prepare(hub, it, source)), tools);
  }

  /** Compiles a program of the catalog. Its arguments are checked by their declared types. */
  static async named(name, options = {}) {
    checkString(name, "name");
    checkOptions(options, PREPARE_OPTIONS, "Program.named");
    const { handle, tools } = Scope.of(options);
    return new Program(await operation((hub, it) => handle.named(hub, it, name)), tools);
  }

  /** The program's source. */
  get source() {
    return this.#handle.source;
  }

  /** Runs the program. */
  async run(options = {}) {
    checkOptions(options, RUN_OPTIONS, "run");
    try {
      return new Outcome(await this.#start(options));
    } catch (error) {
      if (error instanceof WattleError && error.outcome instanceof bindings.OutcomeHandle) {
        error.outcome = new Outcome(error.outcome);
      }
      throw error;
    }
  }

  async #start({ args = [], grants, timeout, approve, signal, context }) {
    if (!Array.isArray(args)) throw settingsError("args: expected an array");
    const texts = args.map(text);
    const handle = this.#handle;
    const isSpecial = [grants, timeout, approve, signal].some((option) => option !== undefined);
    if (!isSpecial && this.#tools.size === 0) {
      return operation((hub, number) => bindings.compute(hub, number, handle, texts));
    }
    const checked =
      grants === undefined
        ? (noGrants ??= new bindings.GrantsHandle("{}"))
        : native(() => new bindings.GrantsHandle(JSON.stringify(grants)));
    const cancel = new bindings.CancelHandle();
    const unfollow = follow(signal, cancel);
    const run = startRun({ tools: this.#tools, approve, context });
    const options = JSON.stringify({ run, timeout, approve: approve !== undefined });
    try {
      return await operation((hub, number) =>
        bindings.run(hub, number, handle, texts, checked, options, cancel),
      );
    } catch (error) {
      throw withReason(error, signal);
    } finally {
      unfollow();
      endRun(run);
    }
  }
}

let noGrants;

/** Converts an argument of a program to a string: anything but a string to JSON. */
function text(arg) {
  return typeof arg === "string" ? arg : (JSON.stringify(arg) ?? "");
}

/** The outcome of a program. */
class Outcome {
  #handle;
  #text;
  #fields;

  constructor(handle) {
    this.#handle = handle;
  }

  /** Everything that the program printed, one result per line. */
  get text() {
    return (this.#text ??= this.#handle.text());
  }

  /** Parses the text as JSON. */
  json() {
    return JSON.parse(this.text);
  }

  #details() {
    return (this.#fields ??= camelCased(JSON.parse(this.#handle.json())));
  }

  [inspect.custom](_, options) {
    const { results, log } = this;
    return `Outcome ${inspect({ results, log }, options)}`;
  }

  get results() {
    return this.#details().results;
  }

  get log() {
    return this.#details().log;
  }

  get fuel() {
    return this.#details().fuel;
  }

  get memoryBytes() {
    return this.#details().memoryBytes;
  }

  get durationMs() {
    return this.#details().durationUs / 1000;
  }

  get calls() {
    return this.#details().calls;
  }

  get artifacts() {
    return this.#details().artifacts;
  }

  /** Returns the changes of files. */
  async changes() {
    return JSON.parse(await operation((hub, number) => bindings.changes(hub, number, this.#handle)));
  }

  /** Reads a file as the program left it. */
  async file(path) {
    return operation((hub, number) => bindings.file(hub, number, this.#handle, path));
  }

  /** Writes the changes to the granted folder. */
  async apply() {
    await operation((hub, number) => bindings.apply(hub, number, this.#handle));
  }
}

/** Compiles and runs a program. */
async function run(source, options = {}) {
  checkOptions(options, [...PREPARE_OPTIONS, ...RUN_OPTIONS], "run");
  const { tools, catalog, ...rest } = options;
  const program = await Program.prepare(source, { tools, catalog });
  return program.run(rest);
}

module.exports = { Program, Outcome, run };
