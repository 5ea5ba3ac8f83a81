/**
 * Renders a program with one `span` for each highlighted token.
 */

import { h } from './dom.js';
import { tokenize } from './tokens.js';

/**
 * @param {string} source
 * @returns {Node[]}
 */
export function highlight(source) {
  return tokenize(source).map(({ kind, text }) => (kind === 'space' || kind === 'text'
    ? document.createTextNode(text)
    : h('span', { class: `t-${kind}` }, text)));
}

/**
 * Returns the nodes of each line, so that lines can have numbers and marks.
 *
 * @param {string} source
 * @returns {Node[][]}
 */
export function highlightLines(source) {
  /** @type {Node[][]} */
  const lines = [[]];
  for (const { kind, text } of tokenize(source)) {
    text.split('\n').forEach((part, i) => {
      if (i > 0) lines.push([]);
      if (part === '') return;
      lines.at(-1)?.push(kind === 'space' || kind === 'text'
        ? document.createTextNode(part) : h('span', { class: `t-${kind}` }, part));
    });
  }
  return lines;
}

/** The languages of fenced code that the highlighter knows. */
export function isProgram(/** @type {string} */ language) {
  return language === 'wat' || language === 'wattle' || language === 'wasm';
}
