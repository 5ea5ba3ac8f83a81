/**
 * Finds completions and the line of help for a position in a program. It has no DOM.
 *
 * @typedef {{name: string, signature: string, sentence: string}} Entry
 * @typedef {{label: string, insert: string, note: string}} Completion
 */

import { FORMS } from './language.js';
import { tokenize } from './tokens.js';

const MAX_SHOWN = 8;

/**
 * Returns the completions of the word that ends at the caret, and where the word starts.
 *
 * @param {string} source
 * @param {number} caret
 * @param {Entry[]} functions The host functions.
 * @param {Entry[]} programs The programs of the catalog.
 * @returns {{start: number, items: Completion[]}}
 */
export function completionsAt(source, caret, functions, programs) {
  const before = source.slice(0, caret);
  const program = /\(call\s+"([\w-]*)$/.exec(before);
  if (program) return { start: caret - (program[1] ?? '').length, items: best(programs.map(toItem), program[1] ?? '') };
  const local = /\$[\w.-]*$/.exec(before);
  if (local) {
    const names = new Set(tokenize(source).filter((token) => token.kind === 'local' && token.at !== local.index).map((token) => token.text));
    return { start: local.index, items: best([...names].map((name) => ({ label: name, insert: name, note: 'variable' })), local[0]) };
  }
  const head = /\(([^\s()[\]";]*)$/.exec(before);
  if (!head) return { start: caret, items: [] };
  const forms = [...FORMS].map(([name, form]) => ({ label: name, insert: name, note: form.signature }));
  return { start: caret - (head[1] ?? '').length, items: best([...forms, ...functions.map(toItem)], head[1] ?? '') };
}

/**
 * Returns the signature and the sentence of the word at a position, or of the form around it.
 *
 * @param {string} source
 * @param {number} at
 * @param {Entry[]} functions
 * @param {boolean} isExact If true, the form around the word does not count.
 * @returns {{signature: string, sentence: string}|null}
 */
export function helpAt(source, at, functions, isExact) {
  const tokens = tokenize(source);
  const index = tokens.findIndex((token) => at >= token.at && at <= token.at + token.text.length && token.kind !== 'space' && token.kind !== 'bracket');
  const exact = index >= 0 ? lookUp(tokens[index]?.text ?? '', functions) : null;
  if (exact || isExact) return exact;
  let depth = 0;
  for (let i = tokens.findLastIndex((token) => token.at < at); i >= 0; i -= 1) {
    const token = tokens[i];
    if (!token) continue;
    if (token.text === ')' || token.text === ']') depth += 1;
    else if (token.text === '(' || token.text === '[') {
      if (depth === 0) {
        const found = lookUp(tokens[i + 1]?.text ?? '', functions);
        if (found) return found;
      } else depth -= 1;
    }
  }
  return null;
}

/**
 * @param {string} word
 * @param {Entry[]} functions
 */
function lookUp(word, functions) {
  const name = word.replace(/[?!]$/, '');
  return FORMS.get(name) ?? functions.find((one) => one.name === name) ?? null;
}

/**
 * @param {Entry} entry
 * @returns {Completion}
 */
function toItem(entry) {
  return { label: entry.name, insert: entry.name, note: entry.signature || entry.sentence };
}

/**
 * @param {Completion[]} items
 * @param {string} prefix
 */
function best(items, prefix) {
  const lower = prefix.toLowerCase();
  const starts = items.filter((item) => item.label.toLowerCase().startsWith(lower) && item.label !== prefix);
  const contains = prefix.length < 2 ? [] : items.filter((item) => !item.label.toLowerCase().startsWith(lower) && item.label.toLowerCase().includes(lower));
  return [...starts, ...contains].slice(0, MAX_SHOWN);
}
