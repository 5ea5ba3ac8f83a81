/**
 * The rows of a waterfall: the visible steps, calls, child runs, host calls and notes of a run, in
 * order.
 * A change of one step rebuilds only the rows from that step on. It has no DOM.
 *
 * @import {HostCall} from './types.js'
 * @import {CallState, Note, RunState, StepState} from './run-state.js'
 *
 * @typedef {object} Row
 * @property {string} key
 * @property {'step'|'call'|'host'|'note'} kind
 * @property {number} depth
 * @property {number} rootStep The index of the root run's step that the row belongs to.
 * @property {StepState} step
 * @property {CallState|null} call
 * @property {HostCall|null} host
 * @property {Note|null} note
 * @property {boolean} isExpandable
 * @property {boolean} isExpanded
 */

/** With more steps than this, host calls are shown only where a person opens a call. */
const MANY_STEPS = 60;

export class RunRows {
  constructor() {
    /** @type {Row[]} */
    this.rows = [];
    /** @type {number[]} The index of each root step's first row. */
    this.starts = [];
    /** @type {Map<string, boolean>} Rows that a person opened or closed. */
    this.toggled = new Map();
  }

  /**
   * Rebuilds the rows from a root step on.
   *
   * @param {RunState} run
   * @param {Map<string, HostCall[]>} hostCalls
   * @param {number} from
   */
  update(run, hostCalls, from) {
    const { steps } = run.root;
    const first = Math.max(0, Math.min(from, this.starts.length, steps.length));
    this.rows.length = first < this.starts.length ? this.starts[first] ?? 0 : this.rows.length;
    this.starts.length = first;
    const isLong = steps.length > MANY_STEPS;
    for (let i = first; i < steps.length; i += 1) {
      const step = steps[i];
      if (!step) continue;
      this.starts.push(this.rows.length);
      this.addStep(step, 0, i, hostCalls, isLong);
    }
  }

  /**
   * @param {StepState} step
   * @param {number} depth
   * @param {number} rootStep
   * @param {Map<string, HostCall[]>} hostCalls
   * @param {boolean} isLong
   */
  addStep(step, depth, rootStep, hostCalls, isLong) {
    const isExpanded = this.toggled.get(step.key) ?? true;
    this.rows.push({ key: step.key, kind: 'step', depth, rootStep, step, call: null, host: null, note: null, isExpandable: step.calls.length + step.notes.length > 0, isExpanded });
    if (!isExpanded) return;
    for (const note of step.notes) this.addNote(note, depth + 1, rootStep, step, null);
    for (const call of step.calls) {
      const hosts = depth === 0 ? hostCalls.get(`${step.number}.${call.number}`) ?? [] : [];
      const isExpandable = hosts.length + call.children.length + call.notes.length > 0;
      const isOpen = isExpandable && (this.toggled.get(call.key) ?? !isLong);
      this.rows.push({ key: call.key, kind: 'call', depth: depth + 1, rootStep, step, call, host: null, note: null, isExpandable, isExpanded: isOpen });
      if (!isOpen) continue;
      for (const host of hosts) {
        this.rows.push({ key: `${call.key}.${host.path}.${host.number}`, kind: 'host', depth: depth + 2, rootStep, step, call, host, note: null, isExpandable: false, isExpanded: false });
      }
      for (const lane of call.children) for (const child of lane.steps) this.addStep(child, depth + 2, rootStep, hostCalls, isLong);
      for (const note of call.notes) this.addNote(note, depth + 2, rootStep, step, call);
    }
  }

  /**
   * @param {Note} note
   * @param {number} depth
   * @param {number} rootStep
   * @param {StepState} step
   * @param {CallState|null} call
   */
  addNote(note, depth, rootStep, step, call) {
    this.rows.push({ key: note.key, kind: 'note', depth, rootStep, step, call, host: null, note, isExpandable: false, isExpanded: false });
  }

  /**
   * @param {string} key
   * @param {boolean} isOpen
   */
  toggle(key, isOpen) {
    this.toggled.set(key, isOpen);
  }

  /** @param {string} key */
  indexOf(key) {
    // A root step's key is its number, so most rows are found near their step's first row.
    const number = Number.parseInt(key, 10);
    const start = Number.isFinite(number) ? this.starts[number - 1] ?? 0 : 0;
    for (let i = Math.max(0, start); i < this.rows.length; i += 1) if (this.rows[i]?.key === key) return i;
    return this.rows.findIndex((row) => row.key === key);
  }
}

/**
 * Returns the times of a row's bar. Notes, and host calls that were recorded without times, have none.
 *
 * @param {Row} row
 * @param {number} now
 * @returns {{start: number, end: number, kind: 'model'|'program'|'host'|'failed'|'waiting'}|null}
 */
export function barOf(row, now) {
  if (row.note) return null;
  if (row.kind === 'step') return { start: row.step.start, end: row.step.thinkEnd ?? now, kind: row.step.error === null ? 'model' : 'failed' };
  if (row.host) {
    const { ts, dur_ms: length, pending, error } = row.host;
    if (ts === null || (length === null && !pending)) return null;
    if (length === null) return { start: ts, end: Math.max(now, ts), kind: 'waiting' };
    return { start: ts, end: ts + length, kind: error ? 'failed' : 'host' };
  }
  const { call } = row;
  if (!call) return null;
  // The clock of the program is monotonic and exact; the events' times have whole milliseconds.
  const end = call.end ?? now;
  const start = call.durMs === null ? call.start : Math.max(call.start, end - call.durMs);
  if (call.question !== null) return { start, end, kind: 'waiting' };
  return { start, end, kind: call.end !== null && !call.success ? 'failed' : 'program' };
}

/**
 * Returns round times for the marks of an axis.
 *
 * @param {number} span In milliseconds.
 * @param {number} count About how many marks fit.
 * @returns {number[]} Offsets from the start.
 */
export function axisMarks(span, count) {
  if (span <= 0) return [];
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000];
  const step = steps.find((one) => span / one <= count) ?? Math.ceil(span / count / 86_400_000) * 86_400_000;
  const marks = [];
  for (let at = 0; at <= span * 0.999; at += step) marks.push(at);
  return marks;
}
