"use strict";
// The errors of all functions.

/** An error, with everything that the caller may want to know about it. */
class WattleError extends Error {
  constructor(fields, { outcome, report, cause } = {}) {
    super(fields.message ?? fields.reason, cause === undefined ? undefined : { cause });
    this.kind = fields.kind;
    this.code = fields.code;
    this.reason = fields.reason;
    this.hint = fields.hint ?? undefined;
    this.line = fields.line ?? undefined;
    this.column = fields.column ?? undefined;
    this.function = fields.function ?? undefined;
    // What may be long is not printed with the error.
    Object.defineProperty(this, "outcome", { value: outcome, writable: true });
    Object.defineProperty(this, "report", { value: report, writable: true });
  }

  get name() {
    return this.constructor.name;
  }
}

/** The program does not compile. */
class InvalidProgramError extends WattleError {}
/** The program may not do what it needs. No instruction was executed. */
class DeniedError extends WattleError {}
/** The program returned an error code or was stopped. */
class ProgramFailedError extends WattleError {}
/** The run of an agent did not complete. */
class RunFailedError extends WattleError {}
/** The run of an agent waits for a person's approval. */
class ParkedError extends WattleError {}
/** The caller cancelled the run. */
class CancelledError extends WattleError {
  // The name of all errors that an AbortSignal causes.
  get name() {
    return "AbortError";
  }
}
/** An argument or an option of the caller is invalid. */
class SettingsError extends WattleError {}
/** The host itself failed. */
class HostError extends WattleError {}

const CLASSES = {
  "invalid-program": InvalidProgramError,
  denied: DeniedError,
  "program-failed": ProgramFailedError,
  "run-failed": RunFailedError,
  parked: ParkedError,
  cancelled: CancelledError,
  settings: SettingsError,
  host: HostError,
};

/** Creates the error of its kind. */
function errorOf(fields, details) {
  return new (CLASSES[fields.kind] ?? WattleError)(fields, details);
}

/** Creates an error about an argument or an option. */
function settingsError(reason) {
  return new SettingsError({ kind: "settings", code: "settings", reason });
}

/** Calls a function of the native module, and turns its exceptions into errors. */
function native(call) {
  try {
    return call();
  } catch (thrown) {
    if (thrown.code === "WATTLE") throw errorOf(JSON.parse(thrown.message));
    // The module's own check of the types of arguments.
    throw settingsError(thrown.message);
  }
}

/** Checks that an argument is a string. */
function checkString(value, what) {
  if (typeof value !== "string") throw settingsError(`${what}: expected a string`);
}

/** Checks that an object has only these options. */
function checkOptions(options, names, what) {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw settingsError(`${what}: expected an object with options`);
  }
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) {
      throw settingsError(
        `${what}: unknown option \`${name}\`; the options are \`${names.join("`, `")}\``,
      );
    }
  }
}

module.exports = {
  WattleError,
  InvalidProgramError,
  DeniedError,
  ProgramFailedError,
  RunFailedError,
  ParkedError,
  CancelledError,
  SettingsError,
  HostError,
  errorOf,
  settingsError,
  native,
  checkOptions,
  checkString,
};
