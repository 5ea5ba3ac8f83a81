// The types that TypeScript infers. This file is compiled and never run.

import {
  Agent,
  CancelledError,
  ParkedError,
  Program,
  WattleError,
  tool,
  type AgentEvent,
  type Infer,
  type Outcome,
} from "wattle-agent";
import { z } from "zod";

/** Fails to compile unless both types are the same. */
function same<A, B>(
  _: (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never,
): void {}

const literal = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer" },
    tags: { type: "array", items: { enum: ["a", "b"] } },
    more: {},
  },
  required: ["name", "tags"],
} as const;
const inferred: Infer<typeof literal> = { name: "Ada", tags: ["a"] };
same<typeof inferred.name, string>(true);
same<typeof inferred.age, number | undefined>(true);
same<typeof inferred.tags, ("a" | "b")[]>(true);
same<typeof inferred.more, unknown>(true);
// @ts-expect-error a required property is missing
const incomplete: Infer<typeof literal> = { name: "Ada" };

tool({
  name: "converts",
  description: "Gets what zod makes of the arguments",
  input: z.object({ when: z.string().transform((text) => new Date(text)) }),
  run({ when }, { signal }) {
    same<typeof when, Date>(true);
    same<typeof signal, AbortSignal>(true);
    return when.getFullYear();
  },
});
tool({
  name: "literal",
  description: "Has a schema as it is written",
  input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  // @ts-expect-error there is no argument `missing`
  run({ n, missing }) {
    same<typeof n, number>(true);
    return n + missing;
  },
});
// @ts-expect-error a tool has a function
tool({ name: "none", description: "Has none" });

const text = new Agent({ model: "openai:gpt-5-mini" });
const answer = await text.run("Say hello.");
same<typeof answer.output, string>(true);

const typed = new Agent({ model: { cassette: "a.jsonl" }, output: z.object({ n: z.number() }) });
const value = await typed.run("Count.");
same<typeof value.output, { n: number }>(true);

const json = new Agent({
  model: { name: "some", baseUrl: "http://127.0.0.1:1/v1" },
  output: { type: "array", items: { type: "string" } },
});
const resumed = await json.resume("a-run", { answers: { "1.1": true, "1.2": "never" } }).result();
same<typeof resumed.output, string[]>(true);

// @ts-expect-error an agent has a model
new Agent({ prompt: "Be brief." });
// @ts-expect-error programs are prepared
new Program();

async function events(stream: AsyncIterable<AgentEvent>): Promise<Outcome | undefined> {
  try {
    for await (const event of stream) {
      switch (event.type) {
        case "answer":
          same<typeof event.text, string>(true);
          break;
        case "call_started":
          same<typeof event.args, readonly string[]>(true);
          break;
      }
    }
  } catch (error) {
    if (error instanceof ParkedError) return void error.report.pending.map(({ call }) => call);
    if (error instanceof CancelledError) return void error.cause;
    if (error instanceof WattleError && error.kind === "program-failed") return undefined;
    throw error;
  }
  return undefined;
}

{
  await using agent = new Agent({ model: "openai:gpt-5-mini", store: "runs" });
  await using stream = agent.stream("Say hello.");
  await events(stream);
}
