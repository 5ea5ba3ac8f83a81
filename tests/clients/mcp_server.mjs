// A server of the TypeScript SDK 2.x over streamable HTTP. The argument is the port.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createMcpHandler, fromJsonSchema, McpServer } from "@modelcontextprotocol/server";

const number = { type: "number" };
const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "small", version: "1" });
  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: fromJsonSchema({ type: "object", properties: { a: number, b: number }, required: ["a", "b"] }),
      outputSchema: fromJsonSchema({ type: "object", properties: { sum: number }, required: ["sum"] }),
    },
    async ({ a, b }) => {
      const structuredContent = { sum: a + b };
      return { structuredContent, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
    },
  );
  return server;
});

createServer(async (incoming, outgoing) => {
  const body = incoming.method === "POST" ? Readable.toWeb(incoming) : undefined;
  const url = `http://${incoming.headers.host}${incoming.url}`;
  const request = new Request(url, { method: incoming.method, headers: incoming.headers, body, duplex: "half" });
  const response = await handler.fetch(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
  else outgoing.end();
}).listen(Number(process.argv[2]), "127.0.0.1");
