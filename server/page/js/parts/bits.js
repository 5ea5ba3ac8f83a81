/**
 * Small pieces that many views use: statuses, ids, times, copy buttons, empty states.
 *
 * @import {Child} from '../dom.js'
 * @import {IconName} from './icon.js'
 * @import {RunLine, Status, Usage} from '../types.js'
 */

import { h } from '../dom.js';
import { ago, cost, exactTime, number, shortId } from '../format.js';
import { icon } from './icon.js';
import { announce, notify } from './notify.js';

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
  const reason = status === 'stopped' ? STOP_WORDS[stop ?? ''] : undefined;
  return h('span', { class: `status ${status}`, title: reason ? `stopped ${reason}` : null }, STATUS_WORDS[status] ?? status);
}

/** @param {string|null|undefined} stop */
export function stopReason(stop) {
  return STOP_WORDS[stop ?? ''] ?? '';
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

/** @param {RunLine} run */
export function costText(run) {
  return cost(run.usage?.cost);
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

/** Placeholder lines while something loads. */
export function skeleton(lines = 6) {
  announce('Loading');
  return h('div', { class: 'skeleton', 'aria-hidden': 'true' }, Array.from({ length: lines }, () => h('i')));
}

/**
 * A notice with an icon.
 *
 * @param {'bad'|'good'|'attention'|''} kind
 * @param {...Child} children
 */
export function notice(kind, ...children) {
  const name = kind === 'good' ? 'check' : 'warning';
  return h('div', { class: `notice ${kind}`, role: kind === 'bad' ? 'alert' : null }, kind ? icon(name) : null, h('div', { class: 'grow' }, ...children));
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
