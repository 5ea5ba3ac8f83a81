"use strict";
// Catalogs, and what programs may call by name.

const { bindings, operation } = require("./hub.js");
const { checkString, native, settingsError } = require("./errors.js");
const { toolsByName } = require("./tool.js");
const { camelCased } = require("./names.js");

/** What programs and agents may call: the programs of a catalog, and tools. */
class Scope {
  constructor(catalog, definitions) {
    if (catalog !== undefined && !(catalog instanceof Catalog)) {
      throw settingsError("catalog: expected a Catalog");
    }
    this.tools = toolsByName(definitions);
    // Two tools of one name are an error, so the list has all of them.
    const specs = (definitions ?? []).map((one) => this.tools.get(one.name).spec);
    const folders = catalog?.folders ?? [];
    this.handle = native(() => new bindings.ScopeHandle(folders, JSON.stringify(specs)));
  }

  /** Returns the scope of these options. */
  static of({ catalog, tools }) {
    if (catalog === undefined && (tools === undefined || tools.length === 0)) {
      return (builtIn ??= new Scope());
    }
    return new Scope(catalog, tools);
  }
}

/** The scope with the built-in programs. */
let builtIn;

/** The built-in programs, and those in folders of the application. */
class Catalog {
  #handle;

  constructor(folders = []) {
    if (!Array.isArray(folders)) throw settingsError("Catalog: expected an array of folders");
    this.folders = Object.freeze([...folders]);
    this.#handle = native(() => new bindings.ScopeHandle([...folders], "[]"));
  }

  /** Returns all programs, sorted by name. */
  list() {
    return camelCased(JSON.parse(native(() => this.#handle.programs())));
  }

  /** Returns the programs that match some words, best first. */
  search(words) {
    return camelCased(JSON.parse(native(() => this.#handle.programs(words))));
  }

  /** Returns a program with its source and its manual page, or undefined. */
  get(name) {
    const program = native(() => this.#handle.program(name));
    return program === null ? undefined : camelCased(JSON.parse(program));
  }
}

/** Checks a program without running it. */
async function check(source, { catalog, tools } = {}) {
  checkString(source, "source");
  const { handle } = Scope.of({ catalog, tools });
  return camelCased(JSON.parse(await operation((hub, number) => handle.check(hub, number, source))));
}

module.exports = { Scope, Catalog, check };
