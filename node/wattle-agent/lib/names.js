"use strict";
// The names of fields: in JSON as in the HTTP API, in JavaScript in camel case.

/** Fields with values of the application or for it, which are left as they are. */
const OPAQUE = new Set(["data", "messages"]);

/** Returns the value with the keys of all its objects in camel case. */
function camelCased(value) {
  if (Array.isArray(value)) return value.map(camelCased);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([key, field]) => [
    key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
    OPAQUE.has(key) ? field : camelCased(field),
  ]);
  return Object.fromEntries(fields);
}

module.exports = { camelCased };
