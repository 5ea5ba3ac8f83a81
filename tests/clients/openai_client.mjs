// The official OpenAI client for JavaScript against a server with recorded answers.
//
// Usage: node openai_client.mjs BASE_URL TOKEN. Prints one line and exits with 0 if all checks pass.

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { VERSION } from 'openai/version';

const [base, token] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: token, maxRetries: 0, timeout: 60_000 });
const messages = [{ role: 'user', content: 'Say hello.' }];

const models = await client.models.list();
assert(models.data.some((model) => model.id === 'wattle'));

const plain = await client.chat.completions.create({ model: 'wattle', messages });
assert.equal(plain.choices[0].message.content, 'hello');

let text = '';
let usage = null;
const stream = await client.chat.completions.create({
  model: 'wattle', messages, stream: true, stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? '';
  usage = chunk.usage ?? usage;
}
assert.equal(text, 'hello');
assert(usage.total_tokens >= 0);

const response = await client.responses.create({ model: 'wattle', input: 'Say hello.' });
assert.equal(response.output_text, 'hello');
const kinds = [];
const events = await client.responses.create({ model: 'wattle', input: 'Say hello.', stream: true });
for await (const event of events) kinds.push(event.type);
assert.equal(kinds.at(-1), 'response.completed');

// A stream that the client cancels.
const cancelled = await client.chat.completions.create({ model: 'wattle', messages, stream: true });
for await (const _ of cancelled) break;
cancelled.controller.abort();

const wrong = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'wrong', maxRetries: 0 });
await assert.rejects(() => wrong.models.list(), OpenAI.AuthenticationError);
await assert.rejects(
  () => client.chat.completions.create({ model: 'gpt-9', messages }), OpenAI.NotFoundError);
await assert.rejects(
  () => client.chat.completions.create({ model: 'wattle', messages: [] }),
  OpenAI.UnprocessableEntityError);
console.log(`openai ${VERSION} for JavaScript: ok`);
