/**
 * One-line texts about calls and steps. It has no DOM.
 *
 * @import {CallState, Note, RunState, StepState} from './run-state.js'
 */

import { count, firstLine, visible } from './format.js';

/**
 * Returns a call as the terminal prints it: `csv_to_json("sales.csv")` or `program, 5 lines`.
 *
 * @param {Pick<CallState, 'source'|'label'|'args'|'body'>} call
 */
export function callTitle(call) {
  if (call.source === 'wat') return `program, ${count((call.body ?? '').split('\n').length, 'line')}`;
  const args = call.args.map((arg) => JSON.stringify(arg.length > 60 ? `${arg.slice(0, 60)}…` : arg)).join(', ');
  return visible(`${call.label}(${args})`);
}

/** @param {CallState} call */
export function callOutcome(call) {
  if (call.question !== null) return 'waiting';
  if (call.end === null) return 'running';
  return call.success ? 'done' : 'failed';
}

/** @param {StepState} step */
export function repairText(step) {
  return step.attempts.length === 0 ? '' : `repaired ×${step.attempts.length}`;
}

/** @param {Note} note */
export function noteTitle({ kind, text, error }) {
  const title = { artifact: `artifact ${text}`, contributed: error === null ? `${text} added a note` : `${text} failed`, recalled: error === null ? text : 'the memory failed' }[kind];
  return visible(title);
}

/**
 * Returns what a running run is doing now.
 *
 * @param {RunState} run
 */
export function activity(run) {
  const step = run.root.steps.at(-1);
  if (!step) return 'Starting';
  const open = step.calls.filter((call) => call.end === null);
  const first = open[0];
  if (run.parked.size > 0) return 'Waiting for approval';
  if (!first) return step.attempts.length > 0 ? 'The model repairs its program' : 'The model is thinking';
  return open.length === 1 ? `Running ${first.source === 'wat' ? 'a program' : first.label}` : `Running ${open.length} programs`;
}

/**
 * Returns the call in the model's text while it is written, other than the one that gives the answer.
 *
 * @param {string} draft
 * @returns {string}
 */
export function callDraft(draft) {
  const at = draft.search(/ToolCall::(?!R|$)/);
  return at < 0 ? '' : draft.slice(at);
}

const ATTACHED = /\n\nAttached files: (`[^`\n]+`(?:, `[^`\n]+`)*)$/;

/**
 * Returns a message that names the files that were sent with it, for the model and for the chat.
 *
 * @param {string} text
 * @param {string[]} names
 */
export function withAttachments(text, names) {
  return names.length === 0 ? text : `${text}\n\nAttached files: ${names.map((name) => `\`${name.replaceAll('`', "'")}\``).join(', ')}`;
}

/**
 * Returns the text of a message, and the names of the files that were sent with it.
 *
 * @param {string} message
 * @returns {{text: string, names: string[]}}
 */
export function splitAttachments(message) {
  const found = ATTACHED.exec(message);
  return found ? { text: message.slice(0, found.index), names: (found[1] ?? '').slice(1, -1).split('`, `') } : { text: message, names: [] };
}

/** @param {CallState} call */
export function outputPreview(call) {
  return visible(firstLine(call.output, 140));
}
