/// <reference lib="esnext.disposable" />

export {};

// Schemas

/** A JSON Schema. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A schema of a library that implements Standard Schema and Standard JSON Schema, such as zod 4.2. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** A schema of arguments, results or answers. */
export type Schema = StandardSchema<any, any> | JsonSchema;

/**
 * The type of the values that a schema describes. Of a JSON Schema, it follows `type`, `properties`,
 * `required`, `items`, `enum` and `const`; anything else is `unknown`.
 */
export type Infer<S> = 0 extends 1 & S
  ? any
  : S extends StandardSchema<any, infer Output>
    ? Output
    : OfJson<S>;

type OfJson<S> = S extends { const: infer Value }
  ? Value
  : S extends { enum: readonly (infer Value)[] }
    ? Value
    : S extends { type: infer Type }
      ? Type extends "string"
        ? string
        : Type extends "number" | "integer"
          ? number
          : Type extends "boolean"
            ? boolean
            : Type extends "null"
              ? null
              : Type extends "array"
                ? S extends { items: infer Items }
                  ? OfJson<Items>[]
                  : unknown[]
                : Type extends "object"
                  ? OfObject<S>
                  : unknown
      : unknown;

type OfObject<S> = S extends { properties: infer Properties }
  ? {
      -readonly [Key in keyof Properties as Key extends RequiredKey<S> ? Key : never]: OfJson<
        Properties[Key]
      >;
    } & {
      -readonly [Key in keyof Properties as Key extends RequiredKey<S> ? never : Key]?: OfJson<
        Properties[Key]
      >;
    }
  : { [key: string]: unknown };

type RequiredKey<S> = S extends { required: readonly (infer Key)[] } ? Key : never;

// Tools

/** What a tool gets besides its arguments. */
export interface ToolContext {
  /** The value that the caller passed to the run as `context`. No model sees it. */
  readonly context: any;
  /** Aborted when the result is no longer awaited: after the timeout, or if the run is cancelled. */
  readonly signal: AbortSignal;
}

/** A function of the application that programs call. */
export interface Tool<Input extends Schema = any, Output extends Schema = any> {
  /** The name by which programs call the tool: lowercase letters, digits and `_`. */
  readonly name: string;
  /** The description, which the model reads. */
  readonly description: string;
  /** The schema of the arguments, an object whose properties are the arguments. By default, none. */
  readonly input?: Input;
  /** The schema of the results, which programs then read as values and not as strings. */
  readonly output?: Output;
  /** Maximum duration of a call, in milliseconds: 60,000 by default. */
  readonly timeout?: number;
  /**
   * Computes the result, which must be convertible to JSON. If it throws, the program fails with
   * EREMOTE and the text of the exception, unless it handles the error.
   */
  run(input: Infer<Input>, context: ToolContext): unknown;
}

/** Returns the tool. The arguments of `run` have the types of the schema. */
export function tool<const Input extends Schema, const Output extends Schema>(
  definition: Tool<Input, Output>,
): Tool<Input, Output>;

// Programs

/** What programs may use. By default, nothing that touches the machine. */
export interface Grants {
  /**
   * The folder that programs work on. What they write stays in memory until it is applied, unless
   * `write` is true.
   */
  readonly files?: string | { readonly path: string; readonly write?: boolean };
  /** The hosts that programs may reach, such as `api.example.com`, `*.example.com`, `127.0.0.1:8080`,
   * or `*` for all public hosts. */
  readonly hosts?: readonly string[];
  /** Variables that programs read by `(kv.get "tenant:NAME")`. */
  readonly variables?: { readonly [name: string]: string };
  /** Rules on effects that are allowed. */
  readonly allow?: readonly string[];
  /** Rules on effects that need approval. */
  readonly ask?: readonly string[];
  /** Rules on effects that are denied. */
  readonly deny?: readonly string[];
}

/** A request for the approval of everything that a program would do and that a rule asks about. */
export interface ApprovalRequest {
  /** The questions. The program runs only if all are approved. */
  readonly questions: readonly {
    /** The question as a sentence. */
    readonly text: string;
    /** The full name of the host function, such as `http.get`. */
    readonly function: string;
    /** The effect, such as `reach https://example.com/`. */
    readonly effect: string;
    /** The line of the program, counted from 1. */
    readonly line: number | null;
  }[];
  /** The program's source. */
  readonly program: string;
  /** The program's arguments. */
  readonly args: readonly string[];
}

/**
 * An answer: `true`, `false`, `"always"` (for the rest of the run), `"later"` (an agent's run with a
 * store is then parked), or any other string, which is the reason for a denial.
 */
export type Approval = boolean | string;

/** Answers requests for approval. If it throws, the program is denied. */
export type Approve = (request: ApprovalRequest) => Approval | PromiseLike<Approval>;

export interface PrepareOptions {
  /** The tools that the program may call. */
  readonly tools?: readonly Tool[];
  /** The programs that the program may call. By default, those that are built in. */
  readonly catalog?: Catalog;
}

export interface ProgramRunOptions {
  /** The program's arguments. Anything but a string is converted to JSON. */
  readonly args?: readonly unknown[];
  readonly grants?: Grants;
  /** Maximum running time, in milliseconds: 150,000 by default and at most. */
  readonly timeout?: number;
  /** Answers requests for approval, which are otherwise denied. */
  readonly approve?: Approve;
  /** Cancels the run. */
  readonly signal?: AbortSignal;
  /** A value for the tools of the run. */
  readonly context?: unknown;
}

export interface RunOptions extends PrepareOptions, ProgramRunOptions {}

/**
 * Compiles and runs a program.
 *
 * @throws {InvalidProgramError} The program does not compile.
 * @throws {DeniedError} The program may not do what it needs.
 * @throws {ProgramFailedError} The program failed.
 */
export function run(source: string, options?: RunOptions): Promise<Outcome>;

/** A program that was prepared once and runs any number of times. */
export class Program {
  private constructor();
  /** Compiles a program. */
  static prepare(source: string, options?: PrepareOptions): Promise<Program>;
  /** Compiles a program of the catalog. Its arguments are checked by their declared types. */
  static named(name: string, options?: PrepareOptions): Promise<Program>;
  /** The program's source. */
  readonly source: string;
  /** Runs the program. */
  run(options?: ProgramRunOptions): Promise<Outcome>;
}

/** Data that a program left for the application. */
export interface Artifact {
  readonly name: string;
  readonly data: { readonly text: string } | { readonly base64: string };
}

/** The outcome of a program. */
export class Outcome {
  private constructor();
  /** Everything that the program printed, one result per line. */
  readonly text: string;
  /** Everything that the program printed, result by result. */
  readonly results: readonly string[];
  /** The lines that the program logged. */
  readonly log: readonly string[];
  /** The fuel that the program used. */
  readonly fuel: number;
  /** The memory that the program used, in bytes. */
  readonly memoryBytes: number;
  /** The running time, in milliseconds. */
  readonly durationMs: number;
  /** The calls of host functions. */
  readonly calls: readonly {
    readonly function: string;
    readonly calls: number;
    readonly failed: number;
  }[];
  readonly artifacts: readonly Artifact[];
  /** Parses the text as JSON. */
  json(): any;
  /** Returns the changes of files. */
  changes(): Promise<FileChange[]>;
  /** Reads a file as the program left it. */
  file(path: string): Promise<Uint8Array>;
  /** Writes the changes to the granted folder. */
  apply(): Promise<void>;
}

/** A change of a file. */
export interface FileChange {
  readonly path: string;
  readonly kind: "created" | "modified" | "deleted";
  /** The size, in bytes. */
  readonly size: number;
}

/** Checks a program without running it. */
export function check(source: string, options?: PrepareOptions): Promise<CheckReport>;

/** The result of a check. */
export interface CheckReport {
  /** True if the program can run. */
  readonly ok: boolean;
  readonly diagnostics: readonly Diagnostic[];
  /** What the program may access outside its run, if it is valid. */
  readonly touches: {
    readonly functions: readonly string[];
    readonly reads: readonly string[];
    readonly writes: readonly string[];
    readonly urls: readonly string[];
    readonly keys: readonly string[];
    readonly programs: readonly string[];
    readonly services: readonly string[];
    readonly unknown: readonly string[];
  } | null;
}

/** An error or a warning about a program. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  /** A stable name, such as `unknown-function`. */
  readonly code: string;
  /** The line, counted from 1. */
  readonly line: number;
  /** The column, in characters, counted from 1. */
  readonly column: number;
  readonly message: string;
  readonly hint?: string | null;
}

/** The built-in programs, and those in folders of the application. */
export class Catalog {
  constructor(folders?: readonly string[]);
  readonly folders: readonly string[];
  /** Returns all programs, sorted by name. */
  list(): CatalogProgram[];
  /** Returns the programs that match some words, best first. */
  search(words: string): CatalogProgram[];
  /** Returns a program with its source and its manual page. */
  get(name: string): (CatalogProgram & { readonly source: string; readonly manual: string }) | undefined;
}

/** A program of a catalog. */
export interface CatalogProgram {
  readonly name: string;
  readonly description: string;
  readonly usage: string;
  readonly args: readonly {
    readonly name: string;
    readonly typeHint: string;
    readonly description: string;
    readonly default: string | null;
  }[];
  readonly returns: string | null;
  readonly tags: readonly string[];
  readonly origin: string;
}

// Agents

/** A model: its name, or its name and endpoint, or a recording. */
export type Model =
  | string
  | {
      /** The model's name, such as `openai:gpt-5`. The part before the colon is a provider, whose key
       * is in the environment. */
      readonly name?: string;
      /** The base URL of an endpoint that is compatible with OpenAI. */
      readonly baseUrl?: string;
      /** The key for the endpoint. */
      readonly apiKey?: string;
    }
  | {
      /** The file of a recording, whose answers replace those of a model. */
      readonly cassette: string;
    };

export interface AgentOptions<Output extends Schema = Schema> extends PrepareOptions {
  readonly model: Model;
  /** The agent's name, which identifies its runs in the store. By default, a hash of the options. */
  readonly name?: string;
  /** The role and the rules at the beginning of the prompt. */
  readonly prompt?: string;
  /** The schema of the answers. Without it, an answer is text. */
  readonly output?: Output;
  /** Names or patterns of the catalog programs that the model is offered. By default, all. */
  readonly programs?: readonly string[];
  /** Items that the prompt lists as memory. */
  readonly memory?: readonly string[];
  /** What programs may use. */
  readonly grants?: Grants;
  /** The folder that keeps the runs, so that they can be resumed. */
  readonly store?: string;
  /** The folder for the traces of the runs. */
  readonly traces?: string;
  /** Maximum number of steps of a run, 12 by default. */
  readonly maxSteps?: number;
  /** Maximum duration of a run, in milliseconds. */
  readonly timeout?: number;
  /** Maximum number of tokens that a run uses. */
  readonly maxTokens?: number;
  /** Maximum number of tokens of one answer, 4,096 by default. */
  readonly maxAnswerTokens?: number;
  /** The sampling temperature, from 0 to 2. */
  readonly temperature?: number;
  /** Answers requests for approval, in all runs that have no function of their own. */
  readonly approve?: Approve;
}

export interface AgentRunOptions {
  /** Cancels the run. */
  readonly signal?: AbortSignal;
  /** The messages of the conversation before this run: `messages` of a report. */
  readonly history?: readonly Message[];
  /** A label for the run and its events. */
  readonly session?: string;
  /** A value for the tools of the run. */
  readonly context?: unknown;
  /** Answers requests for approval. */
  readonly approve?: Approve;
}

export interface ResumeOptions extends AgentRunOptions {
  /** The answers to pending approvals, by the `call` of each. */
  readonly answers?: { readonly [call: string]: Approval };
}

/** An agent. Its runs are independent of each other. */
export class Agent<const Output extends Schema = never> {
  constructor(options: AgentOptions<Output>);
  /** The agent's name, which identifies its runs in the store. */
  readonly name: string;
  /**
   * Runs the agent until it has an answer.
   *
   * @throws {RunFailedError} The run did not complete.
   * @throws {ParkedError} The run waits for approvals.
   * @throws {CancelledError} The run was cancelled.
   */
  run(message: string, options?: AgentRunOptions): Promise<Report<Answer<Output>>>;
  /** Returns a run with its events. It starts when the first event or the result is read. */
  stream(message: string, options?: AgentRunOptions): AgentStream<Answer<Output>>;
  /** Resumes a run that waits for approvals, or whose process ended. */
  resume(runId: string, options?: ResumeOptions): AgentStream<Answer<Output>>;
  /** Closes the agent's store, so that another process can resume its runs at once. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

type Answer<Output> = [Output] extends [never] ? string : Infer<Output>;

/** A run of an agent, as its events. Leaving a `for await` loop early cancels the run. */
export class AgentStream<Output = unknown> implements AsyncIterableIterator<AgentEvent, undefined> {
  private constructor();
  /** The run's id, once it has started. */
  readonly runId: string | undefined;
  /** Returns the next event. Throws after the last one if the run did not complete. */
  next(): Promise<IteratorResult<AgentEvent, undefined>>;
  /** Cancels the run, and waits for its end. */
  return(): Promise<IteratorResult<AgentEvent, undefined>>;
  /** Waits for the end of the run, and returns its report. Events that were not read are lost. */
  result(): Promise<Report<Output>>;
  /** Cancels the run. */
  cancel(reason?: string): void;
  [Symbol.asyncIterator](): this;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A message of a conversation. */
export interface Message {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

/** Tokens and cost. */
export interface Usage {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  /** The cost in dollars, if prices are known. */
  readonly cost?: number;
}

export type Status = "completed" | "failed" | "cancelled" | "parked";

/** The report of a run. */
export interface Report<Output = unknown> {
  readonly runId: string;
  readonly rootRunId: string;
  readonly sessionId?: string;
  readonly agent: string;
  readonly status: Status;
  /** The reason why the run stopped, such as `answered` or `max_steps`. */
  readonly stop?: string;
  /** The text of the answer, or a message that explains why there is none. */
  readonly text: string;
  /** The answer: a value of the output schema, or the text. */
  readonly output: Output;
  /** The reason why the run did not complete. */
  readonly abortReason?: string;
  /** The exchanges with the model. */
  readonly modelCalls: readonly {
    readonly index: number;
    readonly finish?: string;
    readonly usage: Usage;
    readonly startedMs: number;
    readonly durationMs: number;
    readonly error?: string;
    readonly calls: readonly {
      readonly step: number;
      readonly call: number;
      readonly name: string;
      readonly args: readonly string[];
      readonly success: boolean;
      readonly durationMs: number;
    }[];
  }[];
  /** The messages of the run, which can be the history of the next one. */
  readonly messages: readonly Message[];
  readonly artifacts: readonly Artifact[];
  readonly usage: Usage;
  readonly cost?: number;
  /** The start of the run, in milliseconds since 1970. */
  readonly startedMs: number;
  readonly durationMs: number;
}

/** The report of a run that did not complete. */
export interface FailedReport extends Omit<Report, "output"> {
  /** The approvals that a parked run waits for. */
  readonly pending: readonly { readonly call: string; readonly question: string }[];
}

/** Fields of the events that are not pieces of text. */
interface RunFields {
  readonly runId: string;
  readonly rootRunId: string;
  readonly sessionId?: string;
  readonly agent: string;
  /** The time, in milliseconds since 1970. */
  readonly ts: number;
}

/** An event of a run. */
export type AgentEvent =
  /** The next piece of the model's text, of a thought, or of the answer. */
  | { readonly type: "delta" | "thinking" | "answer"; readonly text: string }
  /** The pieces of the answer so far belong to no answer. */
  | { readonly type: "void"; readonly step: number }
  /** The run failed. */
  | { readonly type: "error"; readonly text: string }
  | (RunFields &
      (
        | { readonly type: "run_started"; readonly input: string }
        | { readonly type: "model_call_started"; readonly modelCall: number }
        | {
            readonly type: "model_call_ended";
            readonly modelCall: number;
            readonly finish?: string;
            readonly usage: Usage;
            readonly durationMs: number;
            readonly error?: string;
          }
        | {
            readonly type: "call_started";
            readonly modelCall: number;
            readonly name: string;
            readonly args: readonly string[];
          }
        | {
            readonly type: "call_ended";
            readonly modelCall: number;
            readonly name: string;
            readonly success: boolean;
            /** The text that the model reads. */
            readonly output: string;
            readonly durationMs: number;
          }
        | { readonly type: "retry"; readonly attempt: number; readonly error: string }
        | { readonly type: "artifact"; readonly name: string; readonly bytes: number }
        | { readonly type: "run_ended"; readonly status: Status; readonly text: string }
      ));

// Errors

/** The kinds of errors. */
export type ErrorKind =
  | "invalid-program"
  | "denied"
  | "program-failed"
  | "run-failed"
  | "parked"
  | "cancelled"
  | "settings"
  | "host";

/** An error, with everything that the caller may want to know about it. */
export class WattleError extends Error {
  protected constructor();
  readonly kind: ErrorKind;
  /**
   * A stable name: the error code of a program, such as `ENOENT`, the code of a diagnostic, such as
   * `unknown-function`, or a word for the reason why a run stopped, such as `timeout`.
   */
  readonly code: string;
  /** A sentence that says what is wrong. */
  readonly reason: string;
  /** A sentence that says what to do. */
  readonly hint?: string;
  /** The line of the program, counted from 1. */
  readonly line?: number;
  /** The column, in characters, counted from 1. */
  readonly column?: number;
  /** The full name of the host function that failed, such as `http.get`. */
  readonly function?: string;
}

/** The program does not compile. */
export class InvalidProgramError extends WattleError {
  readonly kind: "invalid-program";
}

/** The program may not do what it needs. No instruction was executed. */
export class DeniedError extends WattleError {
  readonly kind: "denied";
}

/** The program returned an error code or was stopped. */
export class ProgramFailedError extends WattleError {
  readonly kind: "program-failed";
  /** What the program did before it failed. */
  readonly outcome: Outcome;
}

/** The run of an agent did not complete. */
export class RunFailedError extends WattleError {
  readonly kind: "run-failed";
  readonly report: FailedReport;
}

/** The run of an agent waits for a person's approval. */
export class ParkedError extends WattleError {
  readonly kind: "parked";
  readonly report: FailedReport;
}

/** The caller cancelled the run. The name is `AbortError`; `cause` is the reason of the signal. */
export class CancelledError extends WattleError {
  readonly kind: "cancelled";
  /** The report of an agent's run. */
  readonly report?: FailedReport;
}

/** An argument or an option of the caller is invalid. */
export class SettingsError extends WattleError {
  readonly kind: "settings";
}

/** The host itself failed. */
export class HostError extends WattleError {
  readonly kind: "host";
}
