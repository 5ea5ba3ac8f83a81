import assert from 'node:assert/strict';
import test from 'node:test';
import { oncePerFrame } from '../../page/js/dom.js';

/** A browser with a clock that only its methods move. */
function browser(t) {
  let now = 0;
  let frames = [];
  let timers = [];
  const names = { requestAnimationFrame: (run) => frames.push(run), setTimeout: (run, ms = 0) => timers.push({ run, at: now + ms }) };
  for (const [name, value] of Object.entries(names)) {
    const before = globalThis[name];
    globalThis[name] = value;
    t.after(() => { globalThis[name] = before; });
  }
  t.mock.method(performance, 'now', () => now);
  return {
    work: (ms) => { now += ms; },
    /** Runs the frames and timers of some time, in steps of 1 ms. */
    pass: (ms) => {
      for (let i = 0; i < ms; i += 1) {
        const due = timers.filter((timer) => timer.at <= now);
        timers = timers.filter((timer) => timer.at > now);
        for (const timer of due) timer.run();
        const queued = frames;
        frames = [];
        for (const run of queued) run();
        now += 1;
      }
    },
  };
}

test('many calls draw once in the next frame', (t) => {
  const { pass } = browser(t);
  let drawn = 0;
  const draw = oncePerFrame(() => { drawn += 1; });
  draw();
  draw();
  assert.equal(drawn, 0);
  pass(5);
  assert.equal(drawn, 1);
  draw();
  pass(5);
  assert.equal(drawn, 2);
});

test('slow drawing pauses in proportion, and the last call is drawn', (t) => {
  const { work, pass } = browser(t);
  let text = 0;
  let shown = 0;
  let drawn = 0;
  const draw = oncePerFrame(() => {
    drawn += 1;
    shown = text;
    work(100);
  }, 2);
  for (let i = 0; i < 3000; i += 1) {
    text += 1;
    draw();
    pass(1);
  }
  assert.ok(drawn >= 5 && drawn <= 20, `${drawn} draws`);
  pass(300);
  assert.equal(shown, text);
});

test('drawing that throws draws again', (t) => {
  const { pass } = browser(t);
  let drawn = 0;
  const draw = oncePerFrame(() => {
    drawn += 1;
    throw new Error('failed');
  }, 2);
  draw();
  assert.throws(() => pass(1), /failed/);
  pass(10);
  draw();
  assert.throws(() => pass(10), /failed/);
  assert.equal(drawn, 2);
});
