"use strict";
// Schemas of tools and answers: JSON Schemas, or the schemas of a library such as zod.

const { settingsError } = require("./errors.js");

/** The edition of JSON Schema that libraries write. */
const TARGET = "draft-2020-12";

/**
 * Returns the JSON Schema of a schema. `side` says whether it describes the values before the
 * library converts them (`input`), or after (`output`).
 */
function jsonSchema(schema, side, what) {
  if (typeof schema !== "object" && typeof schema !== "function") {
    throw settingsError(`${what}: expected a JSON Schema, or a schema of a library such as zod`);
  }
  const standard = schema?.["~standard"];
  if (standard === undefined) return schema;
  if (standard.jsonSchema === undefined) {
    throw settingsError(
      `${what}: this version of ${standard.vendor} cannot write JSON Schema; zod can since 4.2`,
    );
  }
  return standard.jsonSchema[side]({ target: TARGET });
}

/** Validates and converts a value by a schema of a library. Other schemas leave it as it is. */
async function validated(schema, value) {
  const standard = schema?.["~standard"];
  if (standard === undefined) return value;
  const result = await standard.validate(value);
  if (result.issues !== undefined) {
    const issue = ({ message, path = [] }) => {
      const keys = path.map((key) => (typeof key === "object" ? key.key : key));
      return keys.length > 0 ? `${keys.join(".")}: ${message}` : message;
    };
    throw new Error(result.issues.map(issue).join("; "));
  }
  return result.value;
}

module.exports = { jsonSchema, validated };
