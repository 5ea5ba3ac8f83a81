// Runs an agent with a tool, and reads its events. The words of the model are a recording; with a key
// in the environment, `model: "openai:gpt-5-mini"` asks a real one.

import assert from "node:assert";
import { Agent, tool } from "wattle-agent";
import { z } from "zod";

const weather = tool({
  name: "weather",
  description: "Returns the weather in a city",
  input: z.object({ city: z.string().describe("The name of the city") }),
  run({ city }) {
    return `${city}: ${city === "Rome" ? 24 : 7} degrees`;
  },
});

const agent = new Agent({
  model: { cassette: "weather.jsonl" },
  prompt: "You compare the weather in cities.",
  tools: [weather],
});

const stream = agent.stream("Is it warmer in Oslo or in Rome?");
const outputs: string[] = [];
let answer = "";
for await (const event of stream) {
  if (event.type === "call_ended") outputs.push(event.output);
  if (event.type === "answer") answer += event.text;
  if (event.type === "void") answer = "";
}
const report = await stream.result();
console.log(outputs, answer, report.usage);
assert.match(outputs[0] ?? "", /Oslo: 7 degrees/);
assert.equal(answer, "It is warmer in Rome.");
assert.equal(report.output, answer);
