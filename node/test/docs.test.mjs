// Runs every example of the guide and of the README. Their model is an endpoint on loopback.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { program, provider, response } from "./provider.mjs";

/** The steps of the model, by the beginning of the task that an example has for it. */
const SCRIPTS = {
  "Is it cold": [program('(out (weather "Oslo"))'), response("It is cold.")],
  "What is the capital": ['{"name": "Oslo", "population": 724290}'],
  "Write a poem": [response("The rain has gone.")],
  "Write a note": [program('(fs.write "note.txt" "x") (out "written")'), response("Written.")],
};

const folder = fileURLToPath(new URL("..", import.meta.url));
const examples = [];
for (const page of ["node.md", "README.md"]) {
  const text = await readFile(join(folder, "docs", page), "utf8");
  for (const [, source] of text.matchAll(/^```js\n([^]*?)^```$/gm)) examples.push([page, source]);
}

test("the guide has examples", () => assert(examples.length >= 10, `${examples.length}`));

for (const [number, [page, source]] of examples.entries()) {
  test(`example ${number + 1}, of ${page}`, async (t) => {
    const cwd = await mkdtemp(join(tmpdir(), "wattle-"));
    t.after(() => rm(cwd, { recursive: true }));
    await symlink(join(folder, "node_modules"), join(cwd, "node_modules"));
    const task = Object.keys(SCRIPTS).find((task) => source.includes(task));
    const { model } = await provider(t, ...(SCRIPTS[task] ?? []));
    const runnable = source.replaceAll('"openai:gpt-5-mini"', JSON.stringify(model));
    const child = spawn(process.execPath, ["--input-type=module", "-e", runnable], { cwd });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (data) => (stdout += data));
    child.stderr.on("data", (data) => (stderr += data));
    const [code] = await once(child, "close");
    assert.equal(code, 0, stderr);
    for (const [, expected] of source.matchAll(/console\.log\(.*\/\/ (.*)$/gm)) {
      assert(stdout.includes(expected), `${expected} is not in ${stdout}`);
    }
    assert.notEqual(stdout, "");
  });
}
