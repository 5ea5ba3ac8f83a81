/**
 * Small pieces that many views use: statuses, ids, times, copy buttons, empty states.
 *
 * @import {Child} from '../dom.js'
 * @import {IconName} from './icon.js'
 * @import {RunLine, Status, Usage} from '../types.js'
 */

import { errorText } from '../api-error.js';
import { h, prose } from '../dom.js';
import { ago, cost, exactTime, number, shortId, visible } from '../format.js';
import { icon } from './icon.js';
import { act, announce, notify } from './notify.js';

const STATUS_WORDS = {
  queued: 'queued', running: 'running', parked: 'waiting', done: 'done', failed: 'failed', cancelled: 'cancelled',
  blocked: 'blocked', stopped: 'stopped',
};
/** @type {Record<string, string>} */
const STOP_WORDS = {
  max_steps: 'at the limit on steps', timeout: 'at the time limit', max_tokens: 'at the limit on tokens',
  max_cost: 'at the limit on cost', repeated: 'after the same call again and again', truncated: 'because the answer was truncated',
  invalid_output: 'because the answer does not match its schema',
};

/** @param {{status: Status, stop?: string|null}} run */
export function statusLabel({ status, stop }) {
  return h('span', { class: `status ${status}`, title: status === 'stopped' ? stopText(stop) : null }, STATUS_WORDS[status] ?? status);
}

/** @param {string|null|undefined} stop */
function stopText(stop) {
  return `stopped ${STOP_WORDS[stop ?? ''] ?? ''}`.trim();
}

/**
 * Returns why a run ended without an answer, or an empty text.
 *
 * @param {RunLine} run
 */
export function endText({ status, stop, result }) {
  if (status === 'stopped') return `The run ${stopText(stop)}.`;
  if (status === 'failed' || status === 'blocked') return result || 'The run failed.';
  if (status !== 'cancelled') return '';
  const reason = /^stopped: cancelled \((.*)\)$/.exec(result ?? '')?.[1] ?? '';
  return `The run was stopped${reason === '' || reason === 'requested over HTTP' ? '' : `: ${reason}`}.`;
}

/**
 * Says why a run ended without an answer, with a button that goes on. Returns null if there is
 * nothing to say.
 *
 * @param {RunLine} run
 * @param {(prompt: string) => Promise<unknown>} send Sends a message in the session of the run.
 */
export function endNotice(run, send) {
  const { status, prompt } = run;
  const why = endText(run);
  if (why === '') return null;
  const again = (/** @type {string} */ label, /** @type {string} */ text) => h('button', { class: 'tiny', onclick: act(() => send(text)) }, icon('replay'), label);
  return notice(status === 'stopped' ? 'attention' : status === 'cancelled' ? '' : 'bad', why,
    h('div', { class: 'row' }, run.parent ? null : status === 'stopped' ? again('Continue', 'continue') : again('Retry', prompt)));
}

/**
 * Copies a text and says so.
 *
 * @param {string} text
 * @param {string} what
 */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notify(`${what} copied`);
  } catch {
    notify('The browser did not allow copying', { isError: true });
  }
}

/**
 * @param {() => string} text
 * @param {string} what
 * @param {string} [label] Shown beside the icon.
 */
export function copyButton(text, what, label) {
  return h('button', {
    class: `plain tiny${label ? '' : ' icon-only'}`, type: 'button', title: `Copy ${what.toLowerCase()}`,
    'aria-label': `Copy ${what.toLowerCase()}`, onclick: () => void copy(text(), what),
  }, icon('copy'), label);
}

/**
 * @param {string} id
 * @param {string} [what]
 */
export function idLabel(id, what = 'Id') {
  return h('span', { class: 'row nowrap', title: id }, h('span', { class: 'mono' }, shortId(id)), copyButton(() => id, what));
}

/** @param {number|null} ms */
export function timeLabel(ms) {
  if (ms === null) return h('span', null, '–');
  return h('time', { datetime: new Date(ms).toISOString(), title: exactTime(ms) }, ago(ms));
}

/** @param {Usage|null|undefined} usage */
export function usageText(usage) {
  const tokens = (usage?.prompt ?? 0) + (usage?.completion ?? 0);
  if (tokens === 0) return '';
  const cached = usage?.cached ? ` (${number(usage.cached)} cached)` : '';
  return `${number(tokens)} tokens${cached}`;
}

/**
 * An empty state: what is missing, and the next thing to do.
 *
 * @param {IconName} name
 * @param {string} title
 * @param {...Child} children
 */
export function emptyState(name, title, ...children) {
  return h('div', { class: 'empty' }, icon(name), h('h2', null, title), ...children);
}

/** A command to copy. */
export function command(/** @type {string} */ text) {
  return h('span', { class: 'command' }, h('code', null, text), copyButton(() => text, 'Command'));
}

/**
 * The names of files that belong to a message.
 *
 * @param {string[]} names
 * @param {string} address Where the files are.
 */
export function fileChips(names, address) {
  return names.length === 0 ? null : h('ul', { class: 'chips', 'aria-label': 'Attachments' }, names.map((name) => h('li', null, icon('file'), h('a', { class: 'ellipsis', href: address, dir: 'auto' }, visible(name)))));
}

/**
 * Says why a run must be released, with a button that does.
 *
 * @param {string|null|undefined} reason
 * @param {() => Promise<unknown>} release
 */
export function releaseNotice(reason, release) {
  return reason ? notice('attention', reason, ' ', h('button', { class: 'tiny', onclick: act(release) }, 'Release the run')) : null;
}

/**
 * Says why something could not be loaded, with a button that tries again.
 *
 * @param {unknown} error
 * @param {() => void} again
 */
export function loadError(error, again) {
  return [notice('bad', errorText(error)), h('button', { onclick: again }, 'Load again')];
}

/**
 * @param {string} label
 * @param {() => unknown} onDelete
 */
export function deleteButton(label, onDelete) {
  return h('button', { class: 'plain tiny icon-only danger', 'aria-label': label, title: label, onclick: onDelete }, icon('trash'));
}

/** Placeholder lines while something loads. */
export function skeleton(lines = 6) {
  announce('Loading');
  return h('div', { class: 'skeleton', 'aria-hidden': 'true' }, Array.from({ length: lines }, () => h('i')));
}

/**
 * A notice with an icon. Texts are messages of the server or the page.
 *
 * @param {'bad'|'good'|'attention'|''} kind
 * @param {...Child} children
 */
export function notice(kind, ...children) {
  const name = kind === 'good' ? 'check' : 'warning';
  return h('div', { class: `notice ${kind}`, role: kind === 'bad' ? 'alert' : null }, kind ? icon(name) : null, h('div', { class: 'grow' }, children.map((child) => (typeof child === 'string' ? prose(child) : child))));
}

/**
 * Offers a blob as a download.
 *
 * @param {Blob} blob
 * @param {string} name
 */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = h('a', { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
