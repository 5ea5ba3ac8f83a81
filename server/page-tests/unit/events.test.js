import assert from 'node:assert/strict';
import test from 'node:test';
import { followRun } from '../../page/js/events.js';

/** An API whose streams are texts, one for each connection. */
function fake(...streams) {
  const asked = [];
  return {
    asked,
    async send(_method, path) {
      asked.push(path);
      return new Response(streams.shift() ?? '');
    },
    async run() {
      return { status: streams.length === 0 ? 'done' : 'running' };
    },
  };
}

const frame = (id, event) => `${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify({ root_run_id: 'R', ts: 1, ...event })}\n\n`;

async function follow(api, options) {
  const events = [];
  let isEnded = false;
  await followRun(api, 'R', new AbortController().signal, { onEvents: (all) => events.push(...all), onEnd: () => { isEnded = true; } }, options);
  assert.ok(isEnded);
  return events.map((event) => `${event.run_id} ${event.seq} ${event.type}`);
}

test('kept events arrive once, and live ones whatever their number', async () => {
  const api = fake(
    frame(1, { run_id: 'R', seq: 1, type: 'thinking' }) + frame(null, { run_id: 'R', seq: 1, type: 'delta', text: 'a' }) + frame(null, { run_id: 'R', seq: 1, type: 'retry', error: 'broke off' }),
    frame(1, { run_id: 'R', seq: 1, type: 'thinking' }) + frame(2, { run_id: 'R', seq: 2, type: 'response', text: 'x' }),
  );
  assert.deepEqual(await follow(api), ['R 1 thinking', 'R 1 delta', 'R 1 retry', 'R 2 response']);
  assert.deepEqual(api.asked, ['/api/run/R/stream', '/api/run/R/stream?after=1']);
});

test('the stream of a tree goes on after the event of any of its runs', async () => {
  const api = fake(
    frame('R:1', { run_id: 'R', seq: 1, type: 'tool_start' }) + frame('C:1', { run_id: 'C', seq: 1, type: 'thinking' }),
    frame('C:2', { run_id: 'C', seq: 2, type: 'response' }) + frame('R:2', { run_id: 'R', seq: 2, type: 'response' }) + frame(null, { type: 'suspended', message: 'x' }),
  );
  assert.deepEqual(await follow(api, { tree: true }), ['R 1 tool_start', 'C 1 thinking', 'C 2 response', 'R 2 response']);
  assert.deepEqual(api.asked, ['/api/run/R/stream?tree=true', '/api/run/R/stream?tree=true&after=C%3A1']);
});
