// The official TypeScript clients, 1.x and 2.x, against `wattle mcp`.
// Arguments: the binary, the upstream file, a recording of a model, and an empty folder.
import assert from "node:assert/strict";
import * as first from "@modelcontextprotocol/sdk/client/index.js";
import * as firstStdio from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as second from "@modelcontextprotocol/client";
import * as secondStdio from "@modelcontextprotocol/client/stdio";

const [binary, upstream, cassette, folder] = process.argv.slice(2);
const info = { name: "test", version: "1" };
const clients = {
  "1.x": {
    Client: first.Client,
    Transport: firstStdio.StdioClientTransport,
    elicit: ElicitRequestSchema,
    call: (client, params, options) => client.callTool(params, undefined, options),
  },
  "2.x": {
    Client: second.Client,
    Transport: secondStdio.StdioClientTransport,
    elicit: "elicitation/create",
    call: (client, params, options) => client.callTool(params, options),
  },
};
clients["2.x, 2026-07-28"] = {
  ...clients["2.x"],
  options: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
};
const PROGRAM = `(let $sum (every.get_sum a: 20 b: 22))
(out (every.echo message: "hello") $sum)
(let $time (time.get_current_time timezone: "Asia/Tokyo"))
(out $time.timezone)
(fs.write "note.txt" "kept")`;
// The server works for a minute.
const SLOW = "(out (every.trigger_long_running_operation duration: 60 steps: 60))";
const ASKED = '(kv.set "a" "b")\n(out "set")';

async function connect({ Client, Transport, elicit, options: more }, options, action) {
  const capabilities = action ? { elicitation: {} } : {};
  const client = new Client(info, { capabilities, ...more });
  const asked = [];
  if (action) {
    client.setRequestHandler(elicit, async (request) => {
      asked.push(request.params.message);
      return action === "accept" ? { action, content: { approve: true } } : { action };
    });
  }
  await client.connect(new Transport({
    command: binary,
    args: ["mcp", "--upstream", upstream, ...options],
    env: { HOME: folder, PATH: process.env.PATH },
    cwd: folder,
  }));
  return { client, asked };
}

for (const [version, sdk] of Object.entries(clients)) {
  const { client } = await connect(sdk, ["--cassette", cassette]);
  const call = async (name, args, failed = false, options = {}) => {
    const result = await sdk.call(client, { name, arguments: args }, options);
    const text = result.content.map((block) => block.text).join("\n");
    assert.equal(Boolean(result.isError), failed, text);
    return text;
  };
  const tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
  assert.deepEqual(tools, ["check_program", "run_program", "run_task", "search_tools"]);
  assert.match(client.getInstructions() ?? "run_program", /run_program/);

  const text = await call("run_program", { program: PROGRAM });
  assert.match(text, /hello.*20 and 22 is 42[^]*Asia\/Tokyo/);
  assert.match(await call("run_program", { program: '(out (fs.read "note.txt"))' }), /kept/);
  assert.match(await call("run_program", { program: "(frobnicate 1)" }, true), /frobnicate/);
  assert.match(await call("check_program", { program: '(http.get "https://a.example/x")' }), /a\.example/);
  assert.match(await call("search_tools", { query: "time in a zone" }), /time\.get_current_time\(timezone/);

  const steps = [];
  const onprogress = (step) => steps.push(step.message);
  assert.match(await call("run_task", { prompt: "Add." }, false, { onprogress }), /The sum is/);
  assert.match(steps[0] ?? "", /step 1/);

  const begin = Date.now();
  const signal = AbortSignal.timeout(500);
  await assert.rejects(call("run_program", { program: SLOW }, false, { signal }));
  assert.match(await call("run_program", { program: "(out (+ 1 2))" }), /^3/);
  assert.ok(Date.now() - begin < 10_000, "the cancelled call held the next one");

  const uris = (await client.listResources()).resources.map((one) => one.uri);
  assert.deepEqual(uris, ["wattle://language", "wattle://functions"]);
  const page = (await client.readResource({ uri: "wattle://functions" })).contents[0].text;
  assert.match(page, /time\.get_current_time/);
  const [prompt] = (await client.listPrompts()).prompts;
  const got = await client.getPrompt({ name: prompt.name, arguments: { task: "Count." } });
  assert.match(got.messages[0].content.text, /Count\./);
  await client.close();

  for (const action of ["accept", "decline", undefined]) {
    const { client, asked } = await connect(sdk, ["--ask", "kv.set"], action);
    const result = await sdk.call(client, { name: "run_program", arguments: { program: ASKED } });
    const text = result.content[0].text;
    assert.equal(Boolean(result.isError), action !== "accept", text);
    if (action) assert.match(asked.join(), /kv\.set/);
    else assert.match(text, /cannot ask its user/);
    await client.close();
  }
  console.log(`TypeScript client ${version}: ok`);
}
process.exit(0);
