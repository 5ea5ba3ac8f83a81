import assert from 'node:assert/strict';
import test from 'node:test';
import { applyEvent, createRun, dropLive, expectStep } from '../../page/js/run-model.js';
import { axisMarks, barOf, RunRows } from '../../page/js/run-rows.js';
import { approval, artifacts, long, parallel, PARTS, sales } from '../mock/scripts.js';

/** Plays a script of the mock server into a run, and returns the run. */
function play(script, id = 'R') {
  const run = createRun(id, 1000);
  let ts = 1000;
  let seq = 0;
  for (const { wait = 1, event, park } of script) {
    ts += wait;
    const one = event ?? (park && { type: 'parked', ...park });
    if (!one) continue;
    const isDelta = PARTS.has(one.type);
    if (!isDelta) seq += 1;
    applyEvent(run, { run_id: id, root_run_id: id, ts, ...(isDelta ? {} : { seq }), ...one });
    if (park) break;
  }
  return run;
}

test('a run with a repair has its attempts, its calls and an answer', () => {
  const run = play(sales());
  assert.deepEqual(run.root.steps.map((step) => step.number), [1, 2, 3]);
  const [first, second, third] = run.root.steps;
  assert.equal(first.calls[0].label, 'csv_to_json');
  assert.equal(first.start, 1000);
  assert.equal(second.attempts.length, 1);
  assert.match(second.attempts[0].body, /map\.increment/);
  assert.match(second.attempts[0].error, /unknown function/);
  assert.equal(second.calls.length, 1);
  assert.match(second.calls[0].body, /map\.incr /);
  assert.equal(second.calls[0].fixes.length, 1);
  assert.ok(third.isAnswer);
  assert.equal(third.draft, '');
  assert.match(run.answer, /East sold most/);
  assert.equal(run.stop, 'answered');
});

test('a run that answers at once has one step', () => {
  const run = createRun('R', 100);
  applyEvent(run, { run_id: 'R', root_run_id: 'R', seq: 1, ts: 300, type: 'response', text: 'hello', steps: 0, stop: 'answered' });
  assert.deepEqual(run.root.steps.map((step) => [step.number, step.isAnswer, step.start, step.thinkEnd]), [[1, true, 100, 300]]);
});

test('a retry drops the draft of its step', () => {
  const run = createRun('R', 0);
  const event = (more) => applyEvent(run, { run_id: 'R', root_run_id: 'R', ts: 1, step: 1, ...more });
  event({ type: 'delta', text: 'half an ans' });
  assert.equal(run.root.steps[0].draft, 'half an ans');
  event({ type: 'retry', seq: 1, attempt: 2, error: 'the answer broke off' });
  assert.equal(run.root.steps[0].draft, '');
  assert.equal(run.root.steps[0].attempts[0].body, null);
});

test('an answer that a call follows is taken back', () => {
  const run = createRun('R', 0);
  const event = (more) => applyEvent(run, { run_id: 'R', root_run_id: 'R', ts: 1, step: 1, ...more });
  event({ type: 'thought_delta', text: 'add ' });
  event({ type: 'thought_delta', text: 'them' });
  event({ type: 'answer_delta', text: 'I look first.' });
  const [step] = run.root.steps;
  assert.deepEqual([step.thinking, step.written, step.events], ['add them', 'I look first.', []]);
  event({ type: 'answer_void' });
  assert.equal(step.written, '');
  event({ type: 'answer_delta', text: 'four' });
  event({ type: 'answer_delta', text: ' and more' });
  assert.equal(step.written, 'four and more');
  dropLive(run);
  assert.equal(step.written, '');
});

test('live events that a stream sends again are not doubled', () => {
  const run = createRun('R', 0);
  const event = (more) => applyEvent(run, { run_id: 'R', root_run_id: 'R', ts: 1, step: 1, ...more });
  event({ type: 'contributed', seq: 1, program: 'x' });
  event({ type: 'delta', text: 'before the break', isLive: true });
  const restart = { type: 'retry', attempt: 1, error: 'the stream broke off', isLive: true };
  event(restart);
  event({ type: 'delta', text: 'half an ', isLive: true });
  dropLive(run);
  event(restart);
  event({ type: 'delta', text: 'half an ans', isLive: true });
  assert.equal(run.root.steps[0].draft, 'half an ans');
  assert.equal(run.root.steps[0].attempts.length, 1);
  event({ type: 'thinking', seq: 2, content: 'a thought' });
  event({ type: 'delta', text: 'wer', isLive: true });
  dropLive(run);
  assert.equal(run.root.steps[0].draft, 'half an ans', 'what came before the newest kept event stays');
});

test('parallel calls and a child run are nested in the call that started it', () => {
  const run = play(parallel('', 'R'));
  const step = run.root.steps[0];
  assert.deepEqual(step.calls.map((call) => call.number), [1, 2, 3, 4]);
  assert.equal(step.calls[2].success, false);
  const child = step.calls[3].children[0];
  assert.equal(child.runId, 'RC1');
  assert.deepEqual(child.steps.map((one) => one.calls.map((call) => call.label)), [['web_links'], ['wat'], []]);
  assert.ok(child.isEnded);
});

test('a parked call has its question until its result', () => {
  const run = play(approval());
  assert.deepEqual([...run.parked.keys()], ['1.1']);
  assert.match(run.root.steps[0].calls[0].question, /http\.post/);
  applyEvent(run, { run_id: 'R', root_run_id: 'R', seq: 9, ts: 5000, type: 'tool_result', step: 1, call: 1, success: true, output: 'ok', exit_code: 0, dur_ms: 2, fuel: 1 });
  assert.equal(run.parked.size, 0);
  assert.equal(run.root.steps[0].calls[0].question, null);
});

test('the next step is expected once all programs have ended', () => {
  const run = createRun('R', 100);
  expectStep(run, 200);
  assert.equal(run.root.steps.length, 1);
  applyEvent(run, { run_id: 'R', root_run_id: 'R', seq: 1, ts: 300, type: 'tool_start', step: 1, call: 1, label: 'wat', source: 'wat', body: '(ret 1)' });
  expectStep(run, 310);
  assert.equal(run.root.steps.length, 1);
  applyEvent(run, { run_id: 'R', root_run_id: 'R', seq: 2, ts: 320, type: 'tool_result', step: 1, call: 1, success: true, output: '', exit_code: 0, dur_ms: 20, fuel: 1 });
  expectStep(run, 330);
  assert.deepEqual(run.root.steps.map((step) => [step.number, step.start]), [[1, 100], [2, 320]]);
  applyEvent(run, { run_id: 'R', root_run_id: 'R', seq: 3, ts: 400, type: 'response', text: '', steps: 1, stop: 'timeout' });
  assert.equal(run.root.steps.length, 1, 'a step without events goes away at the end');
});

test('a request that failed is a step with the error', () => {
  const run = createRun('R', 100);
  applyEvent(run, { run_id: 'R', root_run_id: 'R', seq: 1, ts: 300, type: 'error', message: 'error: no credit' });
  assert.deepEqual(run.root.steps.map((step) => [step.number, step.error, step.thinkEnd]), [[1, 'error: no credit', 300]]);
  const rows = new RunRows();
  rows.update(run, new Map(), 0);
  assert.deepEqual(barOf(rows.rows[0], 0), { start: 100, end: 300, kind: 'failed' });
});

test('rows that grow with each event are those of the whole run', () => {
  const run = createRun('R', 1000);
  const grown = new RunRows();
  let ts = 1000;
  let seq = 0;
  for (const { wait = 1, event } of parallel('', 'R')) {
    ts += wait;
    if (!event) continue;
    seq += 1;
    const from = applyEvent(run, { run_id: 'R', root_run_id: 'R', ts, seq, ...event });
    grown.update(run, new Map(), from);
    const whole = new RunRows();
    whole.update(run, new Map(), 0);
    assert.deepEqual(grown.rows.map((row) => row.key), whole.rows.map((row) => row.key));
  }
  assert.ok(grown.rows.some((row) => row.depth === 3));
  const closed = grown.rows.length;
  grown.toggle('1', false);
  grown.update(run, new Map(), 0);
  assert.ok(grown.rows.length < closed);
});

test('10,000 steps fold in less than a second', () => {
  const began = performance.now();
  const run = play(long('10000'));
  const rows = new RunRows();
  rows.update(run, new Map(), 0);
  assert.equal(run.root.steps.length, 10_001);
  assert.equal(rows.rows.length, 20_001);
  assert.equal(rows.rows[rows.indexOf('5000.1')].key, '5000.1');
  assert.ok(performance.now() - began < 1000, `${performance.now() - began} ms`);
});

test('artifacts and notes belong to their call and their step, and have rows', () => {
  const run = play(artifacts());
  const [step] = run.root.steps;
  assert.deepEqual(step.notes.map((note) => [note.kind, note.text, note.error !== null]), [['contributed', 'house_style.prompt', false], ['contributed', 'calendar.today', true], ['recalled', '2 items from memory', false]]);
  assert.equal(step.calls[0].notes.length, 3);
  assert.deepEqual([...run.artifacts.values()].map((one) => [one.name, one.bytes]), [['../chart \u202e<b>.svg', 6], ['sums.csv', 23]], 'a name has its last data');
  const rows = new RunRows();
  rows.update(run, new Map(), 0);
  assert.deepEqual(rows.rows.map((row) => row.kind), ['step', 'note', 'note', 'note', 'call', 'note', 'note', 'note', 'step']);
  assert.equal(new Set(rows.rows.map((row) => row.key)).size, rows.rows.length);
  assert.ok(rows.rows.every((row) => row.note === null || barOf(row, 0) === null));
});

test('an artifact of a child run is kept by the child run', () => {
  const run = createRun('R', 0);
  const event = (more) => applyEvent(run, { run_id: 'R', root_run_id: 'R', ts: 1, step: 1, call: 1, ...more });
  event({ type: 'tool_start', label: 'delegate', source: 'catalog' });
  event({ run_id: 'C', type: 'tool_start', label: 'wat', source: 'wat', body: '(ret 1)' });
  event({ run_id: 'C', type: 'artifact', name: 'a.txt', bytes: 1 });
  assert.equal(run.artifacts.size, 0);
  assert.equal(run.root.steps[0].calls[0].children[0].steps[0].calls[0].notes[0].artifact.run, 'C');
});

test('bars and axis marks', () => {
  const run = play(sales());
  const rows = new RunRows();
  rows.update(run, new Map(), 0);
  const bar = barOf(rows.rows[1], 0);
  assert.equal(bar.end - bar.start, 4);
  const host = (more) => ({ ...rows.rows[1], host: { function: 'fs.read', args: '', error: null, pending: false, ts: 500, dur_ms: 20, ...more } });
  assert.deepEqual(barOf(host({}), 0), { start: 500, end: 520, kind: 'host' });
  assert.deepEqual(barOf(host({ dur_ms: null, pending: true }), 900), { start: 500, end: 900, kind: 'waiting' });
  assert.equal(barOf(host({ ts: null, dur_ms: null }), 900), null, 'recorded by a version without times');
  assert.deepEqual(axisMarks(2600, 6), [0, 500, 1000, 1500, 2000, 2500]);
  assert.deepEqual(axisMarks(0, 6), []);
});
