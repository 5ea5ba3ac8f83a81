/**
 * The inspector's other tabs: thought, authority, calls, result, raw.
 *
 * @import {Row} from '../run-rows.js'
 * @import {RunFeed} from '../run-feed.js'
 * @import {Authority, HostCall} from '../types.js'
 */

import { api } from '../app.js';
import { fill, h, prose } from '../dom.js';
import { count, duration, exactTime, number, visible } from '../format.js';
import { renderMarkdown } from '../markdown-dom.js';
import { callOutcome, noteTitle } from '../run-text.js';
import { artifactList } from './artifacts.js';
import { copyButton, notice } from './bits.js';
import { checkOnce } from './inspector-program.js';

const CUT = 1200;

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} _feed
 * @param {Row} row
 */
export function drawThought(panel, _feed, { step }) {
  const text = step.thought || step.thinking;
  const body = h('div', { class: 'markdown' });
  if (text) renderMarkdown(body, text);
  fill(panel,
    step.attempts.map((attempt, i) => h('section', { class: 'stack' }, h('h3', null, `Attempt ${i + 1}`), attempt.thought ? h('p', { dir: 'auto' }, visible(attempt.thought)) : null, notice('bad', h('pre', null, prose(attempt.error))))),
    step.attempts.length > 0 ? h('h3', null, `Attempt ${step.attempts.length + 1}`) : null,
    text ? body : step.error !== null ? notice('bad', step.error) : h('p', { class: 'muted' }, step.thinkEnd === null ? 'The model is thinking.' : 'The model gave no thought in this step.'),
    step.notes.length === 0 ? null : h('section', { class: 'stack' }, h('h3', null, 'Added before the model was asked'), h('ul', { class: 'plain-list' },
      step.notes.map((note) => h('li', { dir: 'auto' }, noteTitle(note), note.error === null ? null : notice('bad', h('pre', null, prose(note.error))))))),
    h('p', { class: 'muted small' }, `Started ${exactTime(step.start)}`, step.thinkEnd === null ? '' : `, the model took ${duration(step.thinkEnd - step.start)}`));
}

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} _feed
 * @param {Row} row
 */
export function drawAuthority(panel, _feed, { step, call }) {
  const one = call ?? step.calls[0];
  const body = one?.body ?? step.attempts.at(-1)?.body ?? null;
  if (body === null) {
    fill(panel, one ? [h('p', null, `The catalog program ${visible(one.label)} was called with these arguments:`), h('pre', { class: 'sunken' }, visible(one.args.join('\n') || '(none)'))]
      : h('p', { class: 'muted' }, 'This step ran no program, so it touched nothing.'));
    return;
  }
  fill(panel, h('p', { class: 'muted' }, 'Checking the program…'));
  void checkOnce(body).then((check) => fill(panel, check ? authorityList(check.authority) : h('p', { class: 'muted' }, 'The server did not check the program. Select the tab again to retry.')));
}

/** @type {[keyof Authority, string][]} */
const PARTS = [
  ['hosts', 'Hosts'], ['urls', 'URLs'], ['reads', 'Reads'], ['writes', 'Writes'], ['keys', 'Keys'], ['secrets', 'Secrets'], ['services', 'Services'],
  ['programs', 'Programs'], ['functions', 'Functions'], ['imports', 'Functions'],
];

/** @param {Authority|null} authority */
export function authorityList(authority) {
  if (!authority) return h('p', { class: 'muted' }, 'What the program touches is known once it is valid.');
  const rows = PARTS.filter(([key]) => (authority[key] ?? []).length > 0);
  return h('div', { class: 'stack authority' },
    authority.unknown.length > 0 ? notice('attention', 'Known only when it runs:', h('ul', { class: 'plain-list' }, authority.unknown.map((text) => h('li', null, visible(text)))))
      : notice('good', 'All that it touches is known before it runs.'),
    rows.length === 0 ? h('p', { class: 'muted' }, 'The program touches nothing outside itself.')
      : h('dl', { class: 'facts-list' }, rows.map(([key, label]) => [h('dt', null, label), h('dd', null, h('ul', { class: 'tags' }, (authority[key] ?? []).map((text) => h('li', null, h('code', null, visible(text))))))])));
}

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} feed
 * @param {Row} row
 * @param {HostCall[]} hosts
 */
export function drawCalls(panel, feed, row, hosts) {
  feed.loadHostCalls();
  if (hosts.length === 0) {
    fill(panel, h('p', { class: 'muted' }, 'No host call with an effect is recorded for this program.'));
    return;
  }
  fill(panel, h('ol', { class: 'host-calls' }, hosts.map((one) => h('li', { class: one === row.host ? 'selected' : null },
    h('div', { class: 'row' }, h('span', { class: 'muted' }, String(one.number)), h('code', null, h('b', null, visible(one.function))), h('span', { class: 'badge' }, visible(one.effect)),
      one.pending ? h('span', { class: 'badge attention' }, 'waiting') : null, one.dur_ms === null ? null : h('span', { class: 'end muted small', title: one.ts === null ? null : exactTime(one.ts) }, duration(one.dur_ms))),
    cutText(one.args, 'Arguments'), one.error ? notice('bad', h('pre', null, prose(one.error))) : one.result === null ? null : cutText(one.result, 'Result')))));
}

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} feed
 * @param {Row} row
 */
export function drawResult(panel, feed, { step, call }) {
  const calls = call ? [call] : step.calls;
  if (step.isAnswer && calls.length === 0) {
    const answer = h('div', { class: 'markdown' });
    renderMarkdown(answer, feed.state.answer ?? '');
    fill(panel, answer);
    return;
  }
  if (calls.length === 0) {
    fill(panel, step.error !== null ? notice('bad', step.error) : h('p', { class: 'muted' }, 'This step has no result yet.'));
    return;
  }
  fill(panel, calls.map((one) => {
    const outcome = callOutcome(one);
    const code = one.exitCode === null ? '' : `exit code ${one.exitCode}`;
    return h('section', { class: 'stack' },
      calls.length > 1 ? h('h3', null, visible(one.label)) : null,
      h('p', { class: 'row wrap' }, h('span', { class: `status ${outcome === 'waiting' ? 'parked' : outcome}` }, outcome),
        h('span', { class: 'muted small' }, [one.durMs === null ? '' : duration(one.durMs), one.fuel === null ? '' : `${number(one.fuel)} fuel`, code].filter((text) => text !== '').join(' · '))),
      one.question === null ? null : notice('attention', one.question),
      artifactList(one.notes.flatMap((note) => note.artifact ?? [])),
      one.output ? cutText(one.output, 'Output', 6000) : h('p', { class: 'muted' }, one.question !== null ? 'The call waits for your approval.' : one.end === null ? 'The program is running.' : 'The program had no output.'));
  }));
}

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} feed
 * @param {Row} row
 */
export function drawRaw(panel, feed, { step }) {
  const traces = h('section', { class: 'stack' }, h('button', { class: 'tiny', onclick: async () => {
    try {
      const { steps } = await api.trace(feed.line.id);
      const lines = steps.filter((line) => line.step === step.number);
      fill(traces, h('h3', null, `Trace, ${count(lines.length, 'line')}`), lines.map((line) => jsonBlock(line)));
    } catch {
      fill(traces, h('p', { class: 'muted' }, 'The server keeps no trace of this run.'));
    }
  } }, 'Load the trace of the step'));
  fill(panel, h('h3', null, count(step.events.length, 'event')), step.events.length === 0 ? h('p', { class: 'muted' }, 'No event of this step has arrived.') : step.events.map(jsonBlock), traces);
}

/** @param {unknown} value */
function jsonBlock(value) {
  return cutText(JSON.stringify(value, null, 2), 'Event');
}

/**
 * A text that is cut until a person asks for all of it.
 *
 * @param {string} text
 * @param {string} label
 * @param {number} [limit]
 */
export function cutText(text, label, limit = CUT) {
  const shown = visible(text);
  const body = h('pre', { dir: 'auto' }, shown.length > limit ? `${shown.slice(0, limit)}…` : shown);
  const all = h('button', { class: 'tiny', hidden: shown.length <= limit, onclick: () => { fill(body, shown); all.remove(); } }, `Show all ${number(shown.length)} characters`);
  return h('div', { class: 'cut' }, h('div', { class: 'row' }, h('span', { class: 'muted small' }, label), h('span', { class: 'end' }, copyButton(() => text, label))), body, all);
}
