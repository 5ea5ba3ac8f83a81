// Parses the answer of an agent by a schema of zod. The first recorded answer does not match the schema,
// so the run asks the model again.

import assert from "node:assert";
import { Agent } from "wattle-agent";
import { z } from "zod";

const City = z.object({ name: z.string(), population: z.number().int() });

const agent = new Agent({ model: { cassette: "capital.jsonl" }, output: City });
const { output, modelCalls } = await agent.run("What is the capital of Norway?");
const population: number = output.population;
console.log(output.name, population);
assert.deepEqual(output, { name: "Oslo", population: 724_290 });
assert.equal(modelCalls.length, 2);
