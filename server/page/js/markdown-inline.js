/**
 * Parses the inline part of Markdown: emphasis, code, links and line breaks.
 *
 * @typedef {{kind: 'text', text: string}
 *   | {kind: 'code', text: string}
 *   | {kind: 'strong'|'em'|'del', children: Inline[]}
 *   | {kind: 'link', href: string, children: Inline[]}
 *   | {kind: 'break'}} Inline
 */

const SPECIAL = /[\\`*_~[!<h\n]/g;
const AUTOLINK = /^https?:\/\/[^\s<>"'`]+/;
const MAX_DEPTH = 6;

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
 * @param {number} [depth]
 * @returns {Inline[]}
 */
export function parseInline(text, depth = 0) {
  /** @type {Inline[]} */
  const out = [];
  let plain = '';
  const flush = () => {
    if (plain !== '') out.push({ kind: 'text', text: plain });
    plain = '';
  };
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at >= text.length) break;
    const found = parseAt(text, at, depth);
    if (typeof found === 'string') {
      plain += found;
      at += found.length === 0 ? 1 : found.length;
    } else if (found.skip !== undefined) {
      plain += found.skip;
      at = found.end;
    } else {
      flush();
      if (found.node) out.push(found.node);
      at = found.end;
    }
  }
  flush();
  return out;
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 * @returns {string | {node?: Inline, skip?: string, end: number}} A string is plain text.
 */
function parseAt(text, at, depth) {
  const character = text[at] ?? '';
  switch (character) {
    case '\\': {
      const escaped = text[at + 1] ?? '';
      if (escaped === '\n') return { node: { kind: 'break' }, end: at + 2 };
      return /[!-/:-@[-`{-~]/.test(escaped) ? { skip: escaped, end: at + 2 } : '\\';
    }
    case '\n':
      return text.slice(0, at).endsWith('  ') ? { node: { kind: 'break' }, end: at + 1 } : '\n';
    case '`': return code(text, at);
    case '!':
      // Images are not loaded: a link to one stays a link.
      return text[at + 1] === '[' ? link(text, at + 1, depth) : '!';
    case '[': return link(text, at, depth);
    case '<': return angle(text, at);
    case 'h': return bare(text, at);
    default: return emphasis(text, at, depth);
  }
}

/**
 * @param {string} text
 * @param {number} at
 */
function code(text, at) {
  const ticks = /^`+/.exec(text.slice(at))?.[0] ?? '`';
  const pattern = new RegExp(`(?<!\`)${ticks}(?!\`)`, 'g');
  pattern.lastIndex = at + ticks.length;
  const close = pattern.exec(text);
  if (!close) return ticks;
  const inner = text.slice(at + ticks.length, close.index).replaceAll('\n', ' ');
  const trimmed = /^ .*[^ ].* $/.test(inner) ? inner.slice(1, -1) : inner;
  return { node: /** @type {Inline} */ ({ kind: 'code', text: trimmed }), end: close.index + ticks.length };
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 */
function link(text, at, depth) {
  const close = matching(text, at);
  if (close < 0 || text[close + 1] !== '(' || depth > MAX_DEPTH) return '[';
  const target = /^\(\s*<?([^\s<>]*?)>?(?:\s+["'][^"']*["'])?\s*\)/.exec(text.slice(close + 1, close + 2100));
  if (!target) return '[';
  const href = safeHref(target[1] ?? '');
  const end = close + 1 + target[0].length;
  const children = parseInline(text.slice(at + 1, close), depth + 1);
  if (!href) return { skip: text.slice(at, end), end };
  return { node: /** @type {Inline} */ ({ kind: 'link', href, children }), end };
}

/**
 * @param {string} text
 * @param {number} at
 */
function matching(text, at) {
  let open = 0;
  const limit = Math.min(text.length, at + 1000);
  for (let i = at; i < limit; i += 1) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '[') open += 1;
    else if (text[i] === ']') {
      open -= 1;
      if (open === 0) return i;
    }
  }
  return -1;
}

/**
 * @param {string} text
 * @param {number} at
 */
function angle(text, at) {
  const match = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i.exec(text.slice(at, at + 2100));
  const href = match ? safeHref(match[1] ?? '') : null;
  if (!match || !href) return '<';
  return {
    node: /** @type {Inline} */ ({ kind: 'link', href, children: [{ kind: 'text', text: match[1] ?? '' }] }),
    end: at + match[0].length,
  };
}

/**
 * @param {string} text
 * @param {number} at
 */
function bare(text, at) {
  if (at > 0 && /\w/.test(text[at - 1] ?? '')) return 'h';
  const match = AUTOLINK.exec(text.slice(at, at + 2100));
  if (!match) return 'h';
  const address = match[0].replace(/[.,;:!?)\]*_~]+$/, '');
  const href = safeHref(address);
  if (!href) return 'h';
  return {
    node: /** @type {Inline} */ ({ kind: 'link', href, children: [{ kind: 'text', text: address }] }),
    end: at + address.length,
  };
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 */
function emphasis(text, at, depth) {
  const character = text[at] ?? '*';
  const run = /^(\*{1,3}|_{1,3}|~{1,2})/.exec(text.slice(at, at + 3))?.[0] ?? character;
  const before = text[at - 1] ?? ' ';
  const after = text[at + run.length] ?? ' ';
  if (/\s/.test(after) || (character !== '*' && /\w/.test(before)) || depth > MAX_DEPTH) return run;
  const marks = character === '~' ? (run.length === 2 ? 2 : 0) : Math.min(run.length, 2);
  if (marks === 0) return run;
  const mark = character.repeat(marks);
  const close = closing(text, at + marks, mark, character);
  if (close < 0) return run;
  const children = parseInline(text.slice(at + marks, close), depth + 1);
  const kind = character === '~' ? 'del' : marks === 2 ? 'strong' : 'em';
  return { node: /** @type {Inline} */ ({ kind, children }), end: close + marks };
}

/**
 * @param {string} text
 * @param {number} from
 * @param {string} mark
 * @param {string} character
 */
function closing(text, from, mark, character) {
  const limit = Math.min(text.length, from + 5000);
  for (let i = text.indexOf(mark, from + 1); i >= 0 && i < limit; i = text.indexOf(mark, i + 1)) {
    if (/\s/.test(text[i - 1] ?? '') || text[i - 1] === '\\') continue;
    if (mark.length === 1 && (text[i + 1] === character || text[i - 1] === character)) {
      continue;
    }
    if (character === '_' && /\w/.test(text[i + mark.length] ?? '')) continue;
    return i;
  }
  return -1;
}
