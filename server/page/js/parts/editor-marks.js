/**
 * The layer of the editor that marks diagnostics, matching brackets and the caret.
 *
 * @import {Diagnostic} from '../types.js'
 */

import { h } from '../dom.js';

/**
 * Returns the offset of a line and column, both counted from 1.
 *
 * @param {string} source
 * @param {number} line
 * @param {number} column
 */
export function offsetOf(source, line, column) {
  let at = 0;
  for (let i = 1; i < line; i += 1) {
    const next = source.indexOf('\n', at);
    if (next < 0) return source.length;
    at = next + 1;
  }
  const end = source.indexOf('\n', at);
  return Math.min(at + column - 1, end < 0 ? source.length : end);
}

/**
 * Returns the text as transparent nodes, with a class for each mark.
 *
 * @param {string} source
 * @param {Diagnostic[]} diagnostics
 * @param {{at: number, partner: number|null}|null} brackets
 * @param {number} caret
 * @returns {Node[]}
 */
export function markLayer(source, diagnostics, brackets, caret) {
  /** @type {{from: number, to: number, name: string}[]} */
  const marks = diagnostics.map((one) => {
    const from = offsetOf(source, one.line, one.column);
    return { from, to: Math.max(from + 1, offsetOf(source, one.end_line, one.end_column)), name: one.severity };
  });
  if (brackets) {
    const name = brackets.partner === null ? 'bracket-lone' : 'bracket-match';
    marks.push({ from: brackets.at, to: brackets.at + 1, name });
    if (brackets.partner !== null) marks.push({ from: brackets.partner, to: brackets.partner + 1, name });
  }
  const edges = [...new Set([0, caret, source.length, ...marks.flatMap((mark) => [mark.from, mark.to])])].filter((at) => at <= source.length).sort((a, b) => a - b);
  /** @type {Node[]} */
  const nodes = [];
  edges.forEach((from, i) => {
    if (from === caret) nodes.push(h('span', { class: 'caret-mark' }));
    const to = edges[i + 1];
    if (to === undefined) return;
    const names = marks.filter((mark) => mark.from <= from && mark.to >= to).map((mark) => mark.name);
    const text = source.slice(from, to);
    nodes.push(names.length > 0 ? h('span', { class: names.join(' ') }, text) : document.createTextNode(text));
  });
  return nodes;
}
