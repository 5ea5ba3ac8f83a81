/**
 * The text of a waterfall's row.
 *
 * @import {Row} from '../run-rows.js'
 */

import { fill, h } from '../dom.js';
import { bytes, firstLine, visible } from '../format.js';
import { callOutcome, callTitle, noteTitle, repairText } from '../run-text.js';
import { artifactButton } from './artifacts.js';

/**
 * Draws the text, unless it is already as it should be. Returns a key of what is drawn.
 *
 * @param {HTMLElement} element
 * @param {Row} row
 * @param {string} drawn
 */
export function drawRowText(element, row, drawn) {
  if (row.note) {
    const { artifact, error } = row.note;
    const title = noteTitle(row.note);
    const key = `note ${row.note.key} ${title}`;
    if (key !== drawn) {
      fill(element, h('span', { class: `mark ${error ? 'failed' : 'note'}` }), h('span', { class: 'ellipsis', title: error ? `${title}: ${visible(error)}` : title, dir: 'auto' }, title),
        artifact ? [h('span', { class: 'badge' }, bytes(artifact.bytes)), artifactButton(artifact, { isInRow: true })] : null);
    }
    return key;
  }
  if (row.host) {
    const name = `${row.host.function}${args(row.host.args)}`;
    const key = `host ${name}${row.host.error ?? ''}${row.host.pending}`;
    if (key !== drawn) {
      fill(element, h('span', { class: `mark ${row.host.error ? 'failed' : row.host.pending ? 'waiting' : 'host'}` }), h('span', { class: 'ellipsis mono', title: visible(name) }, visible(name)));
    }
    return key;
  }
  if (row.call) {
    const outcome = callOutcome(row.call);
    const repaired = repairText(row.step);
    const title = callTitle(row.call);
    const key = `call ${outcome} ${repaired} ${row.call.fixes.length} ${title}`;
    if (key !== drawn) {
      fill(element, h('span', { class: `mark ${outcome}` }, h('span', { class: 'visually-hidden' }, `${outcome}: `)),
        h('span', { class: 'ellipsis mono', title }, title),
        repaired ? h('span', { class: 'badge' }, repaired) : null,
        row.call.fixes.length > 0 && !repaired ? h('span', { class: 'badge' }, `fixed ×${row.call.fixes.length}`) : null,
        outcome === 'waiting' ? h('span', { class: 'badge attention' }, 'waiting') : null);
    }
    return key;
  }
  const { step } = row;
  const state = step.error !== null ? 'failed' : step.isAnswer ? 'answer' : step.thinkEnd === null ? 'thinking' : 'think';
  const attempts = step.calls.length === 0 && step.attempts.length > 0 ? ` attempt ${step.attempts.length + 1}` : '';
  const thought = visible(firstLine(step.error ?? step.thought));
  const key = `${state} ${thought}${attempts}`;
  if (key !== drawn) {
    fill(element, h('span', { class: 'number' }, String(step.number)), h('span', { class: state === 'thinking' ? 'live' : null }, `${state}${state === 'thinking' ? '…' : ''}${attempts}`),
      thought ? h('span', { class: 'ellipsis thought', dir: 'auto', title: thought }, thought) : null);
  }
  return key;
}

/** @param {string} text */
function args(text) {
  return text.startsWith('(') ? text : ` ${text}`;
}
