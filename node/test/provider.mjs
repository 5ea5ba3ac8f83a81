// A chat-completions endpoint on loopback with scripted answers.

import { createServer } from "node:http";
import { once } from "node:events";

/**
 * Starts an endpoint, which is closed after the test `t`. Each answer is the text of a message, or a function that gets the request and
 * the response. The last one is repeated.
 */
export async function provider(t, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const sent = JSON.parse(body);
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push({ headers: request.headers, body: sent });
    if (typeof answer === "function") return answer(sent, response);
    if (!sent.stream) {
      response.setHeader("content-type", "application/json");
      const message = { role: "assistant", content: answer };
      return response.end(JSON.stringify({ choices: [{ message, finish_reason: "stop" }] }));
    }
    response.setHeader("content-type", "text/event-stream");
    const frame = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`);
    for (const piece of answer.match(/[^]{1,7}/g) ?? []) frame({ content: piece });
    frame({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const baseUrl = `http://127.0.0.1:${server.address().port}/v1`;
  return { requests, model: { name: "some-model", baseUrl, apiKey: "a-key" } };
}

/** An answer of the model that runs a program. */
export const program = (source) => `ToolCall::Wat(\`\`\`wat\n${source}\n\`\`\`)`;

/** An answer of the model that ends the run. */
export const response = (text) => `ToolCall::Response(${JSON.stringify(text)})`;
