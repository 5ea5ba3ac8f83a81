/**
 * The inspector's tab with a program: its text, the marks of errors, and the differences between
 * attempts.
 *
 * @import {Row} from '../run-rows.js'
 * @import {RunFeed} from '../run-feed.js'
 * @import {Check} from '../types.js'
 */

import { api } from '../app.js';
import { fill, h, prose } from '../dom.js';
import { duration, short, visible } from '../format.js';
import { href } from '../router.js';
import { copyButton, notice } from './bits.js';
import { codeView, diffView } from './code-view.js';
import { icon } from './icon.js';

/** @type {Map<string, Promise<Check|null>>} Checks of programs, which never change. */
const checks = new Map();
const MAX_CHECKS = 200;

/**
 * Returns the server's check of a program, or null if there is none.
 *
 * @param {string} body
 * @returns {Promise<Check|null>}
 */
export function checkOnce(body) {
  let found = checks.get(body);
  if (!found) {
    found = api.check(body).catch(() => {
      checks.delete(body);
      return null;
    });
    checks.set(body, found);
    if (checks.size > MAX_CHECKS) checks.delete(checks.keys().next().value ?? '');
  }
  return found;
}

/** @type {Map<string, Promise<string>>} */
const sources = new Map();

/** @param {string} name */
function sourceOf(name) {
  let found = sources.get(name);
  if (!found) {
    found = api.program(name).then((program) => program.source ?? '', () => '');
    sources.set(name, found);
  }
  return found;
}

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} feed
 * @param {Row} row
 */
export function drawProgram(panel, feed, row) {
  const { step } = row;
  const call = row.call ?? step.calls[0] ?? null;
  const bodies = step.attempts.flatMap((attempt) => (attempt.body === null ? [] : [attempt.body]));
  if (!call && bodies.length === 0) {
    fill(panel, h('p', { class: 'muted' }, step.isAnswer ? 'This step gave the answer and ran no program.' : 'The model has not written a program yet.'),
      step.draft ? h('pre', { class: 'sunken' }, visible(step.draft.slice(-4000))) : null);
    return;
  }
  const parts = [];
  step.attempts.forEach((attempt, i) => {
    const next = step.attempts[i + 1]?.body ?? (i === step.attempts.length - 1 ? call?.body ?? null : null);
    parts.push(h('section', { class: 'stack' }, h('h3', null, `Attempt ${i + 1}`), notice('bad', h('pre', null, prose(attempt.error))),
      attempt.body === null ? null : failed(attempt.body, attempt.error),
      attempt.body !== null && next !== null ? [h('h3', null, `Changes in attempt ${i + 2}`), diffView(attempt.body, next, 'Difference between the attempts')] : null));
  });
  if (call) {
    parts.push(h('section', { class: 'stack' },
      h('div', { class: 'row wrap' }, h('h3', null, step.attempts.length > 0 ? `Attempt ${step.attempts.length + 1}` : call.source === 'catalog' ? visible(call.label) : 'Program'),
        h('span', { class: 'end row' }, call.body !== null ? h('a', { class: 'button tiny', href: href('sandbox', [], { code: call.body, run: feed.line.id }) }, icon('sandbox'), 'Open in sandbox') : null,
          call.body !== null ? copyButton(() => call.body ?? '', 'Program', 'Copy') : null)),
      call.args.length > 0 ? h('dl', { class: 'facts-list' }, call.args.map((arg, i) => [h('dt', null, `Argument ${i}`), h('dd', null, h('pre', null, visible(arg.slice(0, 4000))))])) : null,
      call.body !== null ? codeView(call.body) : catalogSource(call.label),
      call.fixes.length > 0 ? [h('h3', null, 'Automatic fixes'), h('ul', { class: 'plain-list' }, call.fixes.map((fix) => h('li', null, prose(fix))))] : null,
      h('p', { class: 'muted small' }, [call.durMs === null ? '' : duration(call.durMs), call.fuel === null ? '' : `${short(call.fuel)} fuel`].filter((text) => text !== '').join(' · '))));
  }
  fill(panel, parts);
}

/**
 * Shows a program that does not compile, with the errors below their lines.
 *
 * @param {string} body
 * @param {string} error
 */
function failed(body, error) {
  const line = Number(/line (\d+)/.exec(error)?.[1] ?? 0);
  const holder = h('div', null, codeView(body, { marked: line ? [line] : [] }));
  void checkOnce(body).then((check) => {
    if (check && check.diagnostics.length > 0) fill(holder, codeView(body, { diagnostics: check.diagnostics }));
  });
  return holder;
}

/** @param {string} name */
function catalogSource(name) {
  const holder = h('div', { class: 'stack' }, h('p', { class: 'muted' }, 'Loading the program…'));
  void sourceOf(name).then((source) => {
    fill(holder, source === '' ? h('p', { class: 'muted' }, 'The catalog has no source of this program.') : [h('a', { href: href('catalog', [name]) }, 'Open in the catalog'), codeView(source)]);
  });
  return holder;
}
