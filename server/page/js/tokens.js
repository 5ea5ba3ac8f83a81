/**
 * Splits a program into tokens for highlighting, and finds matching brackets. It has no DOM.
 *
 * @typedef {'comment'|'meta'|'string'|'number'|'local'|'form'|'call'|'instruction'|'type'|'code'|'bracket'|'text'|'space'} TokenKind
 * @typedef {{kind: TokenKind, text: string, at: number}} Token
 */

import { FORMS } from './language.js';

const TOKEN = new RegExp([
  '(?<meta>^;;;[^\\n]*)',
  '(?<comment>;;[^\\n]*|\\(;[\\s\\S]*?(?:;\\)|$))',
  '(?<string>r?"""[\\s\\S]*?(?:"""|$)|r"[^"\\n]*(?:"|$)|"(?:\\\\[\\s\\S]|[^"\\\\])*(?:"|$)|\'(?:\\\\u\\{[^}]{0,8}\\}|\\\\.|[^\'\\\\])\')',
  '(?<local>\\$[^\\s()[\\]";]+)',
  '(?<bracket>[()[\\]])',
  '(?<space>\\s+)',
  '(?<word>[^\\s()[\\]";]+)',
  '(?<other>[\\s\\S])',
].join('|'), 'gm');

const NUMBER = /^[+-]?(?:0x[\da-fA-F_]+|\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?)$/;
const TYPES = new Set(['int', 'long', 'float', 'str', 'arr', 'map', 'ints', 'longs', 'floats', 'bytes', 'i32', 'i64', 'f32', 'f64']);
const ERROR_CODE = /^E[A-Z]{3,}$/;

/**
 * @param {string} source
 * @returns {Token[]}
 */
export function tokenize(source) {
  /** @type {Token[]} */
  const tokens = [];
  let isHead = false;
  for (const match of source.matchAll(TOKEN)) {
    const text = match[0];
    const kind = kindOf(match.groups ?? {}, text, isHead);
    tokens.push({ kind, text, at: match.index });
    if (kind !== 'space' && kind !== 'comment') isHead = text === '(';
  }
  return tokens;
}

/**
 * @param {Record<string, string|undefined>} groups
 * @param {string} text
 * @param {boolean} isHead
 * @returns {TokenKind}
 */
function kindOf(groups, text, isHead) {
  for (const kind of /** @type {const} */ (['meta', 'comment', 'string', 'local', 'bracket', 'space'])) {
    if (groups[kind] !== undefined) return kind;
  }
  if (NUMBER.test(text)) return 'number';
  if (ERROR_CODE.test(text)) return 'code';
  if (text === 'true' || text === 'false') return 'number';
  if (isHead && FORMS.has(text.replace(/[?!]$/, ''))) return 'form';
  if (/^(?:[if](?:32|64)|local|global|memory|table|ref|v128)\./.test(text)) return 'instruction';
  if (isHead && /^[a-z_]+\.[\w.]+[?!]?$/.test(text)) return 'call';
  if (TYPES.has(text)) return 'type';
  return isHead ? 'instruction' : 'text';
}

/**
 * Returns the positions of a bracket beside the caret and of its partner, or null.
 *
 * @param {Token[]} tokens
 * @param {number} caret
 * @returns {{at: number, partner: number|null}|null}
 */
export function matchBrackets(tokens, caret) {
  const brackets = tokens.filter((token) => token.kind === 'bracket');
  const index = Math.max(
    brackets.findIndex((token) => token.at === caret),
    brackets.findIndex((token) => token.at === caret - 1),
  );
  const start = brackets[index];
  if (!start) return null;
  const step = isOpen(start.text) ? 1 : -1;
  let depth = 0;
  for (let i = index; i >= 0 && i < brackets.length; i += step) {
    const token = brackets[i];
    if (!token) break;
    depth += isOpen(token.text) ? 1 : -1;
    if (depth === 0) return { at: start.at, partner: token.at };
  }
  return { at: start.at, partner: null };
}

/**
 * Returns the indentation of a new line at the caret: two spaces more than that of the innermost
 * open bracket's line.
 *
 * @param {string} source
 * @param {number} caret
 */
export function indentationAt(source, caret) {
  /** @type {number[]} */
  const open = [];
  for (const token of tokenize(source.slice(0, caret))) {
    if (token.kind !== 'bracket') continue;
    if (isOpen(token.text)) open.push(token.at);
    else open.pop();
  }
  const innermost = open.at(-1);
  if (innermost === undefined) return '';
  const lineStart = source.lastIndexOf('\n', innermost) + 1;
  const line = source.slice(lineStart, innermost);
  const outer = open.filter((at) => at >= lineStart).length;
  return ' '.repeat((/^ */.exec(line)?.[0].length ?? 0) + 2 * Math.min(outer, 1));
}

/** @param {string} text */
function isOpen(text) {
  return text === '(' || text === '[';
}
