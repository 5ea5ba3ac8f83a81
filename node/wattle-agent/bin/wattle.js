#!/usr/bin/env node
"use strict";
// The command line. It runs in the native module, which uses the terminal and handles signals as the
// binary does. Nothing here may touch `process.stdin`, since Node would then read it.

const { load } = require("../lib/native.js");

let native;
try {
  native = load();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(1);
}
const again = [process.execPath, ...process.execArgv, __filename];
process.exit(native.command(["wattle", ...process.argv.slice(2)], again));
