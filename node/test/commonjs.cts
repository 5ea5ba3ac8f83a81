// The package as a CommonJS module. This file is compiled and never run.

import wattle = require("wattle-agent");

export const outcome: Promise<wattle.Outcome> = wattle.run('(out "hello")');
