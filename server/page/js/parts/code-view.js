/**
 * A program for reading: line numbers, highlighting, and messages under the lines they are about.
 *
 * @import {Diagnostic} from '../types.js'
 */

import { diffLines } from '../diff.js';
import { h } from '../dom.js';
import { visible } from '../format.js';
import { highlightLines } from '../highlight.js';

/**
 * @param {string} source
 * @param {{marked?: number[], diagnostics?: Diagnostic[], label?: string}} [options]
 */
export function codeView(source, { marked = [], diagnostics = [], label = 'Program' } = {}) {
  const lines = highlightLines(visible(source));
  return h('div', { class: 'code-view', tabindex: '0', role: 'region', 'aria-label': label },
    h('ol', { class: 'lines' }, lines.map((nodes, i) => {
      const line = i + 1;
      const found = diagnostics.filter((one) => one.line === line);
      const mark = found[0]?.severity ?? (marked.includes(line) ? 'marked' : '');
      return h('li', { class: mark || null },
        h('code', null, nodes.length > 0 ? nodes : ' '),
        found.map((one) => h('p', { class: `message ${one.severity}` }, `${indent(one)}^ ${visible(one.message)}`, one.hint ? h('span', { class: 'hint' }, `${indent(one)}  hint: ${visible(one.hint)}`) : null)));
    })));
}

/** @param {Diagnostic} one */
function indent(one) {
  return ' '.repeat(Math.max(0, Math.min(40, one.column - 1)));
}

/**
 * The difference between two texts, with both line numbers.
 *
 * @param {string} before
 * @param {string} after
 * @param {string} label
 */
export function diffView(before, after, label) {
  const signs = { same: ' ', added: '+', removed: '−' };
  const words = { same: '', added: 'added: ', removed: 'removed: ' };
  return h('div', { class: 'code-view diff', tabindex: '0', role: 'region', 'aria-label': label },
    h('div', { class: 'lines' }, diffLines(visible(before), visible(after)).map((line) => h('div', { class: `diff-line ${line.kind}` },
      h('span', { class: 'n', 'aria-hidden': 'true' }, String(line.before ?? '')), h('span', { class: 'n', 'aria-hidden': 'true' }, String(line.after ?? '')),
      h('span', { class: 'sign', 'aria-hidden': 'true' }, signs[line.kind]),
      words[line.kind] ? h('span', { class: 'visually-hidden' }, words[line.kind]) : null,
      h('code', null, highlightLines(line.text)[0] ?? '')))));
}
