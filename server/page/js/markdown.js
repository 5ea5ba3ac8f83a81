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
 *   | {kind: 'plain', text: string}
 *   | {kind: 'rule'}} BlockBody
 * @typedef {BlockBody & {raw: string}} Block `raw` is the source, which identifies an unchanged block.
 * @typedef {{text: string, blocks: Block[], settled: number, offset: number}} Parsed `settled` is
 *   the number of blocks that no further text changes; the next block begins at `offset` of `text`.
 */

import { parseInline } from './markdown-inline.js';

// Each pattern takes time in proportion to the length of the line. The lines that would show otherwise
// are in `unit/markdown-work.test.js` of the page's tests.
const FENCE = /^ {0,3}(?:(`{3,})(?=[^`]*$)|(~{3,}))\s*([^\s`]*)/;
const FENCE_END = /^ {0,3}(`{3,}|~{3,})\s*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/s;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/s;
const QUOTE = /^ {0,3}> ?(.*)$/s;
const TABLE_RULE = /^ {0,3}[|:-][\s|:-]*$/;
const MAX_DEPTH = 8;
/** A longer text is shown as plain text, because thousands of blocks make a browser slow. */
const MAX_LENGTH = 200_000;
/** The length at which plain text is divided, so that only its last part is drawn again. */
const PART = 20_000;

/** @type {Parsed} */
const EMPTY = { text: '', blocks: [], settled: 0, offset: 0 };

/**
 * @param {string} source
 * @returns {Block[]}
 */
export function parseMarkdown(source) {
  return parseGrowing(source).blocks;
}

/**
 * Parses a text. If it continues the text that was parsed before, the blocks that cannot change any
 * more are the same objects, and their part of the text is not parsed again.
 *
 * @param {string} source
 * @param {Parsed} [before]
 * @returns {Parsed}
 */
export function parseGrowing(source, before = EMPTY) {
  const text = source.replace(/\r\n?/g, '\n');
  if (text.length > MAX_LENGTH) return { ...EMPTY, text, blocks: plainBlocks(text) };
  const base = text.startsWith(before.text) ? before : EMPTY;
  const blocks = base.blocks.slice(0, base.settled);
  const lines = text.slice(base.offset).split('\n');
  let { settled, offset } = base;
  let line = 0;
  for (const [block, next] of parseLines(lines, 0)) {
    blocks.push(block);
    // Its lines and the two after it decide about a block, and the last line may still grow.
    if (next + 2 >= lines.length) continue;
    settled = blocks.length;
    for (; line < next; line += 1) offset += (lines[line] ?? '').length + 1;
  }
  return { text, blocks, settled, offset };
}

/**
 * Divides a text, at line ends where possible.
 *
 * @param {string} text
 * @returns {Block[]}
 */
function plainBlocks(text) {
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < text.length) {
    const lineEnd = text.slice(at, at + PART).lastIndexOf('\n');
    let end = Math.min(text.length, at + PART);
    if (lineEnd > 0 && end < text.length) end = at + lineEnd;
    // The two halves of a character stay together.
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? '')) end -= 1;
    const part = text.slice(at, end);
    blocks.push({ kind: 'plain', text: part, raw: part });
    at = text[end] === '\n' ? end + 1 : end;
  }
  return blocks;
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {[Block, number][]} Each block and the line after it.
 */
function parseLines(lines, depth) {
  /** @type {[Block, number][]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if ((lines[at] ?? '').trim() === '') {
      at += 1;
      continue;
    }
    const [body, next] = parseBlock(lines, at, depth);
    blocks.push([{ ...body, raw: lines.slice(at, next).join('\n') }, next]);
    at = next;
  }
  return blocks;
}

/**
 * Parses the lines within a quote or an item.
 *
 * @param {string[]} lines
 * @param {number} depth
 */
function parseInner(lines, depth) {
  return parseLines(lines, depth + 1).map(([block]) => block);
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
  if (fence) return parseFence(lines, at, fence[1] ?? fence[2] ?? '```', fence[3] ?? '');
  const heading = HEADING.exec(line);
  if (heading) {
    return [{ kind: 'heading', level: (heading[1] ?? '#').length, children: parseInline(withoutHashes(heading[2] ?? '')) }, at + 1];
  }
  if (RULE.test(line)) return [{ kind: 'rule' }, at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return parseQuote(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return parseList(lines, at, depth);
  if (isTable(lines, at)) return parseTable(lines, at);
  return parseParagraph(lines, at);
}

/**
 * Returns a heading without the hashes at its end.
 *
 * @param {string} heading
 */
function withoutHashes(heading) {
  const text = heading.trimEnd();
  let end = text.length;
  while (text[end - 1] === '#') end -= 1;
  return end === 0 || /\s/.test(text[end - 1] ?? '') ? text.slice(0, end).trimEnd() : text;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {string} fence
 * @param {string} language
 * @returns {[BlockBody, number]}
 */
function parseFence(lines, at, fence, language) {
  let end = at + 1;
  // A run of the same character that is at least as long ends the code.
  while (end < lines.length && !FENCE_END.exec(lines[end] ?? '')?.[1]?.startsWith(fence)) end += 1;
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
  return [{ kind: 'quote', blocks: parseInner(inner, depth) }, end];
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
    if (item && (!current || (item[1] ?? '').length < indent) && /\d/.test(item[2] ?? '') === ordered && !RULE.test(line)) {
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
      return { checked: task ? task[1] !== ' ' : null, blocks: parseInner(inner, depth) };
    }),
  }, end];
}

/**
 * @param {string[]} lines
 * @param {number} at
 */
function isTable(lines, at) {
  const rule = lines[at + 1] ?? '';
  return (lines[at] ?? '').includes('|') && TABLE_RULE.test(rule)
    && cells(rule).every((cell) => /^:?-+:?$/.test(cell));
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
