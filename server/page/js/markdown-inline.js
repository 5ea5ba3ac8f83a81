/**
 * Parses the inline part of Markdown: emphasis, code, links and line breaks.
 *
 * Texts are as hostile as their authors, so the work is in proportion to the length of the text,
 * whatever the text is: every position is visited once, from the start to the end, and every search
 * goes forward only and remembers what it found.
 *
 * @typedef {{kind: 'text', text: string}
 *   | {kind: 'code', text: string}
 *   | {kind: 'strong'|'em'|'del', children: Inline[]}
 *   | {kind: 'link', href: string, children: Inline[]}
 *   | {kind: 'break'}} Inline
 * @typedef {{from: number, end: number, depth: number}} Range A part of the text, and the number of
 *   marks around it.
 * @typedef {string | {node: Inline, end: number} | {plain: string, end: number}} Found A string is
 *   plain text as it is in the source; `end` is the position after what was found.
 * @typedef {{close: number, address: string, end: number}} Target Where the text of a link closes,
 *   the address, and the position after the link.
 * @typedef {{start: number, length: number}} Run Neighboring characters that are the same.
 */

const SPECIAL = /[\\`*_~[\]!<h\n]/g;
const SCHEME = /https?:\/\//y;
const BARE_END = /[\s<>"'`]/g;
const ANGLE_END = /[\s<>]/g;
const TARGET_START = /\(\s*<?/y;
const TARGET_END = /[\s<>)]/g;
const QUOTE = /["']/g;
const NO_SPACE = /\S/g;
/** Marks behind an address belong to the sentence. */
const TRAILING = '.,;:!?)]*_~';
const MAX_DEPTH = 6;
/** @type {Run} */
const NONE = { start: Infinity, length: 0 };

/**
 * Returns the address if a link may go there, or null. Only http, https and mailto are allowed.
 *
 * @param {string} address
 */
export function safeHref(address) {
  // Browsers ignore control characters and spaces within a scheme, so an address has none.
  // eslint-disable-next-line no-control-regex
  const clean = address.replace(/[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '');
  return /^(?:https?:\/\/[^/]|mailto:[^/])/i.test(clean) ? clean : null;
}

/**
 * @param {string} text
 * @returns {Inline[]}
 */
export function parseInline(text) {
  return new InlineParser(text).parse();
}

/** Parses one text, once. */
export class InlineParser {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    /** The number of characters that were examined so far, which tests limit. */
    this.steps = 0;
    /** @type {Map<string, Run>} The next run that closes each mark. */
    this.closers = new Map();
    /** @type {Map<number, Target>|null} By the position of the opening bracket. */
    this.links = null;
    /** @type {Map<number, number[]>|null} Starts of runs of backticks by length; the next is last. */
    this.ticks = null;
    /** The end of the current or next address without brackets. */
    this.bareEnd = -1;
  }

  /**
   * @param {Range} [range]
   * @returns {Inline[]}
   */
  parse(range = { from: 0, end: this.text.length, depth: 0 }) {
    /** @type {Inline[]} */
    const out = [];
    let plain = '';
    const flush = () => {
      if (plain !== '') out.push({ kind: 'text', text: plain });
      plain = '';
    };
    let at = range.from;
    while (at < range.end) {
      // A part ends at a special character or at the end of the text, so this never goes beyond.
      const next = Math.min(this.find(SPECIAL, at), range.end);
      plain += this.text.slice(at, next);
      at = next;
      if (at >= range.end) break;
      const found = this.parseAt(at, range);
      if (typeof found === 'string') {
        plain += found;
        at += found.length;
      } else {
        if ('plain' in found) {
          plain += found.plain;
        } else {
          flush();
          out.push(found.node);
        }
        at = found.end;
      }
    }
    flush();
    return out;
  }

  /**
   * @param {number} at
   * @param {Range} range
   * @returns {Found}
   */
  parseAt(at, range) {
    const { text } = this;
    const character = text[at] ?? '';
    switch (character) {
      case '\\': {
        const escaped = at + 1 < range.end ? text[at + 1] ?? '' : '';
        if (escaped === '\n') return { node: { kind: 'break' }, end: at + 2 };
        return /[!-/:-@[-`{-~]/.test(escaped) ? { plain: escaped, end: at + 2 } : '\\';
      }
      case '\n': return text.endsWith('  ', at) ? { node: { kind: 'break' }, end: at + 1 } : '\n';
      case '`': return this.code(at, range);
      // Images are not loaded: a link to one stays a link.
      case '!': return this.link(at + 1, range) ?? '!';
      case '[': return this.link(at, range) ?? '[';
      case '<': return this.angle(at, range);
      case 'h': return this.bare(at, range);
      case '*': case '_': case '~': return this.emphasis(at, range);
      default: return character;
    }
  }

  /**
   * @param {number} at
   * @param {Range} range
   * @returns {Found}
   */
  code(at, range) {
    const stop = this.runEnd(at);
    const length = stop - at;
    const starts = (this.ticks ??= this.findTicks()).get(length) ?? [];
    while ((starts.at(-1) ?? Infinity) < stop) starts.pop();
    const close = starts.at(-1) ?? Infinity;
    if (close + length > range.end) return this.text.slice(at, stop);
    const inner = this.text.slice(stop, close).replaceAll('\n', ' ');
    const isPadded = inner.startsWith(' ') && inner.endsWith(' ') && /[^ ]/.test(inner);
    const text = isPadded ? inner.slice(1, -1) : inner;
    return { node: { kind: 'code', text }, end: close + length };
  }

  findTicks() {
    /** @type {Map<number, number[]>} */
    const ticks = new Map();
    this.steps += this.text.length;
    for (const { 0: run, index } of this.text.matchAll(/`+/g)) {
      const starts = ticks.get(run.length);
      if (starts) starts.push(index);
      else ticks.set(run.length, [index]);
    }
    for (const starts of ticks.values()) starts.reverse();
    return ticks;
  }

  /**
   * Returns the link whose text begins with the bracket at a position, or null.
   *
   * @param {number} at
   * @param {Range} range
   * @returns {Found|null}
   */
  link(at, range) {
    const link = (this.links ??= this.findLinks()).get(at);
    if (!link || link.end > range.end || range.depth > MAX_DEPTH) return null;
    const href = safeHref(link.address);
    if (!href) return { plain: this.text.slice(at, link.end), end: link.end };
    const children = this.parse({ from: at + 1, end: link.close, depth: range.depth + 1 });
    return { node: { kind: 'link', href, children }, end: link.end };
  }

  /** Finds the partner of each bracket, and the targets behind them. */
  findLinks() {
    const { text } = this;
    /** @type {Map<number, Target>} */
    const links = new Map();
    /** @type {number[]} */
    const open = [];
    /** The end of the current or next address, and that of the target which it belongs to. */
    let addressEnd = -1;
    let targetEnd = -1;
    this.steps += text.length;
    for (let i = 0; i < text.length; i += 1) {
      if (text[i] === '\\') i += 1;
      else if (text[i] === '[') open.push(i);
      else if (text[i] === ']') {
        const start = open.pop();
        if (start === undefined || text[i + 1] !== '(') continue;
        TARGET_START.lastIndex = i + 1;
        const from = i + 1 + (TARGET_START.exec(text)?.[0].length ?? 1);
        this.steps += from - i;
        if (addressEnd < from) {
          addressEnd = this.find(TARGET_END, from);
          targetEnd = this.targetEnd(addressEnd);
        }
        if (addressEnd === from || targetEnd < 0) continue;
        links.set(start, { close: i, address: text.slice(from, addressEnd), end: targetEnd });
      }
    }
    return links;
  }

  /**
   * Returns the position after a target's closing parenthesis, or -1. A title may precede it.
   *
   * @param {number} addressEnd
   */
  targetEnd(addressEnd) {
    const { text } = this;
    const from = text[addressEnd] === '>' ? addressEnd + 1 : addressEnd;
    let at = this.find(NO_SPACE, from);
    if (at > from && (text[at] === '"' || text[at] === "'")) {
      at = this.find(NO_SPACE, this.find(QUOTE, at + 1) + 1);
    }
    return text[at] === ')' ? at + 1 : -1;
  }

  /**
   * @param {number} at
   * @param {Range} range
   * @returns {Found}
   */
  angle(at, range) {
    const stop = this.find(ANGLE_END, at + 1);
    if (stop >= range.end || this.text[stop] !== '>') return '<';
    const address = this.text.slice(at + 1, stop);
    const href = /^(?:https?:\/\/|mailto:)/i.test(address) ? safeHref(address) : null;
    return href ? { node: addressLink(href, address), end: stop + 1 } : '<';
  }

  /**
   * @param {number} at
   * @param {Range} range
   * @returns {Found}
   */
  bare(at, range) {
    const { text } = this;
    SCHEME.lastIndex = at;
    if ((at > range.from && /\w/.test(text[at - 1] ?? '')) || !SCHEME.test(text)) return 'h';
    if (this.bareEnd <= at) this.bareEnd = this.find(BARE_END, at);
    let end = Math.min(this.bareEnd, range.end);
    while (end > at + 1 && TRAILING.includes(text[end - 1] ?? ' ')) end -= 1;
    this.steps += Math.min(this.bareEnd, range.end) - at;
    const address = text.slice(at, end);
    const href = safeHref(address);
    return href ? { node: addressLink(href, address), end } : address;
  }

  /**
   * @param {number} at
   * @param {Range} range
   * @returns {Found}
   */
  emphasis(at, { from, end, depth }) {
    const { text } = this;
    const character = text[at] ?? '*';
    const last = Math.min(end, at + (character === '~' ? 2 : 3));
    let stop = at + 1;
    while (stop < last && text[stop] === character) stop += 1;
    const run = text.slice(at, stop);
    const marks = Math.min(run.length, 2);
    const before = at > from ? text[at - 1] ?? ' ' : ' ';
    const after = stop < end ? text[stop] ?? ' ' : ' ';
    if (/\s/.test(after) || depth > MAX_DEPTH) return run;
    if (character !== '*' && /\w/.test(before)) return run;
    if (character === '~' && marks === 1) return run;
    const close = this.closing(at, end, character, marks);
    if (close < 0) return run;
    const children = this.parse({ from: at + marks, end: close, depth: depth + 1 });
    const kind = character === '~' ? 'del' : marks === 2 ? 'strong' : 'em';
    return { node: { kind, children }, end: close + marks };
  }

  /**
   * Returns where the mark at a position closes, or -1 if it does not close before `end`.
   *
   * @param {number} at
   * @param {number} end
   * @param {string} character
   * @param {number} marks
   */
  closing(at, end, character, marks) {
    const mark = character.repeat(marks);
    let run = this.closers.get(mark);
    if (!run || run.start <= at) {
      run = this.nextCloser(at, character, marks);
      this.closers.set(mark, run);
    }
    // The mark around this part may close with the last characters of the same run.
    const length = Math.min(run.length, end - run.start);
    if (length <= 0 || !closes(length, marks)) return -1;
    return run.start + (length === 3 && character !== '~' ? length - marks : 0);
  }

  /**
   * Returns the first run that closes a mark and is behind the run of the mark itself.
   *
   * @param {number} at
   * @param {string} character
   * @param {number} marks
   * @returns {Run}
   */
  nextCloser(at, character, marks) {
    const { text } = this;
    let stop = this.runEnd(at);
    for (;;) {
      const start = text.indexOf(character, stop);
      this.steps += (start < 0 ? text.length : start) - stop;
      if (start < 0) return NONE;
      stop = this.runEnd(start);
      if (!closes(stop - start, marks) || /[\s\\]/.test(text[start - 1] ?? ' ')) continue;
      if (character === '_' && /\w/.test(text[stop] ?? '')) continue;
      return { start, length: stop - start };
    }
  }

  /**
   * Returns the position after the characters that are the same as the one at a position.
   *
   * @param {number} at
   */
  runEnd(at) {
    let stop = at + 1;
    while (stop < this.text.length && this.text[stop] === this.text[at]) stop += 1;
    this.steps += stop - at;
    return stop;
  }

  /**
   * Returns the position of the first match, or the length of the text.
   *
   * @param {RegExp} pattern A pattern of one character, with the flag `g`.
   * @param {number} from
   */
  find(pattern, from) {
    pattern.lastIndex = from;
    const found = pattern.exec(this.text)?.index ?? this.text.length;
    this.steps += Math.max(0, found - from) + 1;
    return found;
  }
}

/**
 * Returns true if a run of this length can close a mark. Three characters close either kind.
 *
 * @param {number} length
 * @param {number} marks
 */
function closes(length, marks) {
  return marks === 2 ? length >= 2 : length === 1 || length === 3;
}

/**
 * @param {string} href
 * @param {string} address
 * @returns {Inline}
 */
function addressLink(href, address) {
  return { kind: 'link', href, children: [{ kind: 'text', text: address }] };
}
