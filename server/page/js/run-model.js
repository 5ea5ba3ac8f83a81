/**
 * The state of a run, folded from its events. It has no DOM, and each event costs constant time.
 *
 * @import {Envelope} from './types.js'
 * @import {Artifact, CallState, Lane, Note, RunState, StepState} from './run-state.js'
 */

import { count } from './format.js';
import { addStep, lastEnd, openLane } from './run-state.js';

export { createRun } from './run-state.js';

const MAX_DRAFT = 200_000;

/** The events of an answer that is being written. They are not kept. */
const PARTS = new Set(['delta', 'thought_delta', 'answer_delta', 'answer_void']);

/**
 * Adds one event to the state. Returns the index of the first step of the root run that changed;
 * everything before it is as it was.
 *
 * @param {RunState} run
 * @param {Envelope} event
 * @returns {number}
 */
export function applyEvent(run, event) {
  const lane = run.lanes.get(event.run_id) ?? openLane(run, event);
  const isKept = !PARTS.has(event.type);
  if (isKept) {
    run.last = Math.max(run.last, event.ts);
    run.lastSeq = Math.max(run.lastSeq, event.seq ?? 0);
  }
  if (!run.started) run.started = event.ts;
  const step = stepOf(run, lane, event);
  if (step && isKept) step.events.push(event);
  HANDLERS[event.type]?.(run, lane, step, event);
  if (step && isKept) step.kept = step.draft.length;
  if (lane.rootStep >= 0) return lane.rootStep;
  const index = step ? run.root.steps.indexOf(step, Math.max(0, step.number - 2)) : -1;
  return index >= 0 ? index : Math.max(0, run.root.steps.length - 2);
}

/**
 * Adds the step that the model is thinking about, if the run goes on and no program runs. The step
 * fills itself when its events arrive.
 *
 * @param {RunState} run
 * @param {number} now
 */
export function expectStep(run, now) {
  const { root } = run;
  if (root.isEnded || run.parked.size > 0) return;
  const step = root.steps.at(-1);
  if (!step) addStep(run, root, 1, run.started || now);
  else if (step.calls.length > 0 && step.calls.every((call) => call.end !== null)) {
    addStep(run, root, step.number + 1, lastEnd(step));
  }
}

/**
 * Removes what live events added since the newest kept event: a stream that begins again sends them
 * again.
 *
 * @param {RunState} run
 */
export function dropLive(run) {
  for (const lane of run.lanes.values()) {
    const step = lane.steps.at(-1);
    if (!step) continue;
    step.draft = step.draft.slice(0, step.kept);
    step.written = step.thinking = '';
    step.attempts = step.attempts.filter((attempt) => !attempt.isLive);
  }
}

/** @param {RunState} run */
export function isRunEnded(run) {
  return run.root.isEnded;
}

/**
 * Returns the time when a step ended; `now` if it has not.
 *
 * @param {StepState} step
 * @param {number} now
 */
export function stepEnd(step, now) {
  if (step.calls.some((call) => call.end === null)) return now;
  if (step.calls.length > 0) return lastEnd(step);
  return step.thinkEnd ?? now;
}

/** @type {Record<string, (run: RunState, lane: Lane, step: StepState|null, event: Envelope) => void>} */
const HANDLERS = {
  delta(_run, _lane, step, event) {
    if (step && step.draft.length < MAX_DRAFT) step.draft += event.text ?? '';
  },
  thought_delta(_run, _lane, step, event) {
    if (step && step.thinking.length < MAX_DRAFT) step.thinking += event.text ?? '';
  },
  answer_delta(_run, _lane, step, event) {
    if (step && step.written.length < MAX_DRAFT) step.written += event.text ?? '';
  },
  answer_void(_run, _lane, step) {
    if (step) step.written = '';
  },
  thinking(_run, _lane, step, event) {
    if (!step) return;
    step.thought = event.content ?? '';
    step.thinkEnd = event.ts;
  },
  tool_start(run, _lane, step, event) {
    if (!step) return;
    if (step.thinkEnd === null) step.thinkEnd = event.ts;
    step.draft = step.written = '';
    const number = Number(event.call ?? 1);
    // A resumed run may announce a call again.
    const known = step.calls.find((call) => call.number === number);
    if (known) {
      if (known.end === null) known.body = event.body ?? known.body;
      return;
    }
    run.parked.delete(`${step.number}.${number}`);
    step.calls.push({
      key: `${step.key}.${number}`, number, label: event.label ?? 'wat', source: event.source ?? 'wat',
      description: event.description ?? '', body: event.body ?? null, args: event.args ?? [], start: event.ts,
      end: null, success: false, output: '', exitCode: null, durMs: null, fuel: null, fixes: [], question: null,
      notes: [], children: [],
    });
  },
  tool_result(run, _lane, step, event) {
    const call = step?.calls.find((one) => one.number === Number(event.call ?? 1));
    if (!step || !call) return;
    call.end = event.ts;
    call.success = event.success ?? false;
    call.output = event.output ?? '';
    call.exitCode = event.exit_code ?? null;
    call.durMs = event.dur_ms ?? null;
    call.fuel = event.fuel ?? null;
    call.fixes = event.fixed ?? [];
    call.question = null;
    run.parked.delete(`${step.number}.${call.number}`);
  },
  retry(_run, _lane, step, event) {
    if (!step) return;
    const open = step.calls.filter((call) => call.end === null);
    const body = open.find((call) => call.body !== null)?.body ?? event.body ?? null;
    const error = event.after_ms === undefined ? event.error ?? '' : `Waiting for the provider: ${event.error ?? ''}`;
    step.attempts.push({ error, body, thought: step.thought, ts: event.ts, isLive: event.isLive ?? false });
    step.calls = step.calls.filter((call) => call.end !== null);
    step.draft = step.written = step.thinking = '';
    step.thought = '';
    step.thinkEnd = null;
  },
  parked(run, lane, _step, event) {
    const id = String(event.call ?? '');
    run.parked.set(id, event.question ?? '');
    const [number, call] = id.split('.').map(Number);
    const waiting = lane.byNumber.get(number ?? 0)?.calls.find((one) => one.number === call);
    if (waiting) waiting.question = event.question ?? '';
  },
  artifact(run, lane, step, event) {
    const artifact = { run: event.run_id, name: event.name ?? '', bytes: event.bytes ?? 0 };
    const call = step?.calls.find((one) => one.number === Number(event.call ?? 1));
    if (call) addNote(call, 'artifact', artifact.name, event, artifact);
    if (lane !== run.root) return;
    run.artifacts.delete(artifact.name);
    run.artifacts.set(artifact.name, artifact);
  },
  contributed(_run, _lane, step, event) {
    if (step) addNote(step, 'contributed', event.program ?? '', event);
  },
  recalled(_run, _lane, step, event) {
    if (step) addNote(step, 'recalled', `${count(event.items ?? 0, 'item')} from memory`, event);
  },
  moderated(run, _lane, _step, event) {
    run.verdict = event.verdict;
  },
  response(run, lane, _step, event) {
    endLane(run, lane, event.ts, event.text ?? '');
    if (lane !== run.root) return;
    run.answer = event.text ?? '';
    run.stop = event.stop ?? null;
    run.usage = event.usage ?? null;
  },
  error(run, lane, _step, event) {
    endLane(run, lane, event.ts, '', event.message ?? 'The run failed.');
  },
};

/**
 * Adds a note to a step or a call.
 *
 * @param {StepState|CallState} owner
 * @param {Note['kind']} kind
 * @param {string} text
 * @param {Envelope} event
 * @param {Artifact|null} [artifact]
 */
function addNote(owner, kind, text, event, artifact = null) {
  owner.notes.push({ key: `${owner.key}!${owner.notes.length + 1}`, kind, text, error: event.error ?? null, ts: event.ts, artifact });
}

/**
 * Returns the step that an event belongs to, and adds it if it is new.
 *
 * @param {RunState} run
 * @param {Lane} lane
 * @param {Envelope} event
 */
function stepOf(run, lane, event) {
  if (event.type === 'parked') return lane.byNumber.get(Number(String(event.call).split('.')[0])) ?? null;
  if (event.step === undefined) return null;
  const known = lane.byNumber.get(event.step);
  if (known) return known;
  const previous = lane.steps.at(-1);
  const start = previous ? lastEnd(previous) : lane.started || (lane === run.root ? run.started : event.ts);
  return addStep(run, lane, event.step, start);
}

/**
 * Ends a lane: its open step becomes the answer or has the error, or goes away if it is empty.
 *
 * @param {RunState} run
 * @param {Lane} lane
 * @param {number} ts
 * @param {string} text
 * @param {string|null} [error]
 */
function endLane(run, lane, ts, text, error = null) {
  lane.isEnded = true;
  for (const call of lane.steps.at(-1)?.calls ?? []) if (call.end === null) call.end = ts;
  if (lane === run.root) run.parked.clear();
  let step = lane.steps.at(-1);
  const hasEnd = text !== '' || error !== null;
  if (hasEnd && !step) step = addStep(run, lane, 1, lane.started || run.started);
  else if (hasEnd && step && step.calls.length > 0 && ts > lastEnd(step)) {
    step = addStep(run, lane, step.number + 1, lastEnd(step));
  }
  if (!step || step.calls.length > 0) return;
  step.thinkEnd ??= ts;
  step.isAnswer = text !== '';
  step.error = error;
  step.draft = step.written = '';
  const isEmpty = !hasEnd && step.thought === '' && step.attempts.length === 0 && step.events.length === 0;
  if (isEmpty && lane.steps.length > 1) {
    lane.steps.pop();
    lane.byNumber.delete(step.number);
  }
}
