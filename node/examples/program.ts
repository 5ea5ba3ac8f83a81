// Runs a program that calls a function of the application.

import assert from "node:assert";
import { Program, ProgramFailedError, check, run, tool } from "wattle-agent";

const stock = new Map([
  ["pen", 12],
  ["cup", 3],
]);

const inStock = tool({
  name: "in_stock",
  description: "Returns how many pieces of an article are in stock",
  input: {
    type: "object",
    properties: { article: { type: "string", description: "The name of the article" } },
    required: ["article"],
  },
  output: {
    type: "object",
    properties: { article: { type: "string" }, pieces: { type: "integer" } },
    required: ["article", "pieces"],
  },
  async run({ article }) {
    const pieces = stock.get(article);
    if (pieces === undefined) throw new Error(`there is no article ${article}`);
    return { article, pieces };
  },
});

// One run.
const hello = await run('(out "hello, {}" (arg 0))', { args: ["Ada"] });
assert.equal(hello.text, "hello, Ada");

// Many runs of a program that is prepared once.
const program = await Program.prepare("(let $it (in_stock (arg 0))) (out $it.pieces)", {
  tools: [inStock],
});
const counts = await Promise.all(["pen", "cup"].map((it) => program.run({ args: [it] })));
console.log(counts.map((outcome) => outcome.json()));
assert.deepEqual(
  counts.map((outcome) => outcome.text),
  ["12", "3"],
);

// A function that throws fails the program, with the position of the call.
try {
  await program.run({ args: ["tree"] });
  assert.fail();
} catch (error) {
  assert(error instanceof ProgramFailedError);
  console.log(`${error.code} in line ${error.line}: ${error.reason}`);
  assert.equal(error.code, "EREMOTE");
}

// A check does not run the program.
const report = await check('(out (fs.read "a.txt"))');
assert.deepEqual(report.touches?.reads, ["a.txt"]);
