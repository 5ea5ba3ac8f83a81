/**
 * Parses the Markdown of models into blocks. It knows headings, paragraphs, lists, task items,
 * quotes, fenced code, tables and rules; HTML stays text. It has no DOM.
 *
 * @import {Inline} from './markdown-inline.js'
 *
 * @typedef {{kind: 'heading', level: number, children: Inline[]}
 *   | {kind: 'paragraph', children: Inline[]}
 *   | {kind: 'code', language: string, text: string}
 *   | {kind: 'list', ordered: boolean, start: number, items: {checked: boolean|null, blocks: Block[]}[]}
 *   | {kind: 'quote', blocks: Block[]}
 *   | {kind: 'table', align: string[], head: Inline[][], rows: Inline[][][]}
 *   | {kind: 'rule'}} BlockBody
 * @typedef {BlockBody & {raw: string}} Block `raw` is the source, which identifies an unchanged block.
 */

import { parseInline } from './markdown-inline.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 8;

/**
 * @param {string} source
 * @param {number} [depth]
 * @returns {Block[]}
 */
export function parseMarkdown(source, depth = 0) {
  const lines = source.replace(/\r\n?/g, '\n').split('\n');
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if ((lines[at] ?? '').trim() === '') {
      at += 1;
      continue;
    }
    const [body, next] = parseBlock(lines, at, depth);
    blocks.push({ ...body, raw: lines.slice(at, next).join('\n') });
    at = next;
  }
  return blocks;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[BlockBody, number]} The block and the line after it.
 */
function parseBlock(lines, at, depth) {
  const line = lines[at] ?? '';
  const fence = FENCE.exec(line);
  if (fence) return parseFence(lines, at, fence[1] ?? '```', fence[2] ?? '');
  const heading = HEADING.exec(line);
  if (heading) {
    return [{ kind: 'heading', level: (heading[1] ?? '#').length, children: parseInline(heading[2] ?? '') }, at + 1];
  }
  if (RULE.test(line)) return [{ kind: 'rule' }, at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return parseQuote(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return parseList(lines, at, depth);
  if (isTable(lines, at)) return parseTable(lines, at);
  return parseParagraph(lines, at);
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {string} fence
 * @param {string} language
 * @returns {[BlockBody, number]}
 */
function parseFence(lines, at, fence, language) {
  const close = new RegExp(`^ {0,3}${fence[0] === '~' ? '~' : '`'}{${fence.length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !close.test(lines[end] ?? '')) end += 1;
  const text = lines.slice(at + 1, end).join('\n');
  return [{ kind: 'code', language: language.toLowerCase(), text }, Math.min(lines.length, end + 1)];
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[BlockBody, number]}
 */
function parseQuote(lines, at, depth) {
  let end = at;
  const inner = [];
  while (end < lines.length) {
    const match = QUOTE.exec(lines[end] ?? '');
    if (!match) break;
    inner.push(match[1] ?? '');
    end += 1;
  }
  return [{ kind: 'quote', blocks: parseMarkdown(inner.join('\n'), depth + 1) }, end];
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[BlockBody, number]}
 */
function parseList(lines, at, depth) {
  const first = ITEM.exec(lines[at] ?? '');
  const ordered = /\d/.test(first?.[2] ?? '');
  /** @type {string[][]} */
  const items = [];
  let indent = 2;
  let end = at;
  while (end < lines.length) {
    const line = lines[end] ?? '';
    const item = ITEM.exec(line);
    const current = items.at(-1);
    if (item && (item[1] ?? '').length < indent && /\d/.test(item[2] ?? '') === ordered && !RULE.test(line)) {
      indent = (item[1] ?? '').length + (item[2] ?? '').length + 1;
      items.push([item[4] ?? '']);
    } else if (current && line.trim() === '') {
      const following = lines[end + 1] ?? '';
      if (!ITEM.test(following) && !/^ {2,}\S/.test(following)) break;
      current.push('');
    } else if (current && /^ {2,}/.test(line)) {
      current.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
    } else if (current && current.at(-1) !== '' && !startsBlock(line)) {
      current.push(line);
    } else {
      break;
    }
    end += 1;
  }
  return [{
    kind: 'list', ordered, start: Number.parseInt(first?.[2] ?? '1', 10) || 1,
    items: items.map((inner) => {
      const task = /^\[([ xX])\]\s+/.exec(inner[0] ?? '');
      if (task) inner[0] = (inner[0] ?? '').slice(task[0].length);
      return { checked: task ? task[1] !== ' ' : null, blocks: parseMarkdown(inner.join('\n'), depth + 1) };
    }),
  }, end];
}

/**
 * @param {string[]} lines
 * @param {number} at
 */
function isTable(lines, at) {
  return (lines[at] ?? '').includes('|') && (lines[at + 1] ?? '').includes('-') && TABLE_RULE.test(lines[at + 1] ?? '');
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @returns {[BlockBody, number]}
 */
function parseTable(lines, at) {
  const head = cells(lines[at] ?? '').map((cell) => parseInline(cell));
  const align = cells(lines[at + 1] ?? '').map((cell) => {
    if (cell.startsWith(':') && cell.endsWith(':')) return 'center';
    return cell.endsWith(':') ? 'end' : 'start';
  });
  const rows = [];
  let end = at + 2;
  while (end < lines.length && (lines[end] ?? '').includes('|') && (lines[end] ?? '').trim() !== '') {
    rows.push(cells(lines[end] ?? '').slice(0, head.length).map((cell) => parseInline(cell)));
    end += 1;
  }
  return [{ kind: 'table', align, head, rows }, end];
}

/** @param {string} line */
function cells(line) {
  return line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '').split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @returns {[BlockBody, number]}
 */
function parseParagraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !startsBlock(lines[end] ?? '') && !isTable(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trimStart()).join('\n');
  return [{ kind: 'paragraph', children: parseInline(text.trimEnd()) }, end];
}

/** @param {string} line */
function startsBlock(line) {
  return line.trim() === '' || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}
