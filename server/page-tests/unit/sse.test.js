import assert from 'node:assert/strict';
import test from 'node:test';
import { SseParser } from '../../page/js/sse.js';

const STREAM = ': heartbeat\n\nid: 1\ndata: {"a":1}\n\nevent: x\r\ndata: one\r\ndata: two\r\n\r\nid: 3\rdata:last\r\r';

test('messages are the same wherever the stream is cut', () => {
  const expected = new SseParser().push(`${STREAM}\n`);
  assert.deepEqual(expected, [
    { id: '1', event: 'message', data: '{"a":1}' }, { id: null, event: 'x', data: 'one\ntwo' }, { id: '3', event: 'message', data: 'last' },
  ]);
  for (let size = 1; size < 20; size += 1) {
    const parser = new SseParser();
    const found = [];
    for (let at = 0; at <= STREAM.length; at += size) found.push(...parser.push(`${STREAM}\n`.slice(at, at + size)));
    assert.deepEqual(found, expected, `pieces of ${size}`);
  }
});
