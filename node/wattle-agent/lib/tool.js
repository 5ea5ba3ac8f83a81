"use strict";
// Functions of the application that programs call.

const { checkOptions, settingsError } = require("./errors.js");
const { jsonSchema, validated } = require("./schema.js");

const OPTIONS = ["name", "description", "input", "output", "timeout", "run"];

/** Returns the tool, whose types TypeScript infers. */
function tool(definition) {
  return definition;
}

/** A checked tool. */
class Tool {
  #input;
  #run;

  constructor(definition) {
    checkOptions(definition, OPTIONS, "tool");
    const { name, description, input = { type: "object", properties: {} }, output } = definition;
    const what = `tool \`${name}\``;
    if (typeof name !== "string" || typeof description !== "string") {
      throw settingsError(`${what}: \`name\` and \`description\` must be strings`);
    }
    if (typeof definition.run !== "function") {
      throw settingsError(`${what}: \`run\` must be a function`);
    }
    this.#input = input;
    this.#run = definition.run;
    this.spec = {
      name,
      description,
      input: jsonSchema(input, "input", `${what}: input`),
      output: output && jsonSchema(output, "output", `${what}: output`),
      timeout: definition.timeout,
    };
  }

  async call(input, context) {
    return this.#run(await validated(this.#input, input), context);
  }
}

/** Checks tools, and returns them by name. */
function toolsByName(definitions = []) {
  if (!Array.isArray(definitions)) throw settingsError("tools: expected an array of tools");
  return new Map(definitions.map((one) => new Tool(one)).map((one) => [one.spec.name, one]));
}

module.exports = { tool, toolsByName };
