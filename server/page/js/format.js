/**
 * Formats numbers, times and ids, and makes invisible characters of foreign text visible.
 */

const grouped = new Intl.NumberFormat('en-US');
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit',
});
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** @param {number} n */
export function number(n) {
  return grouped.format(n);
}

/**
 * Returns a count with its noun: `1 step`, `2 steps`.
 *
 * @param {number} n
 * @param {string} noun
 */
export function count(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
}

/**
 * Returns a duration such as `4 ms`, `1.9 s` or `2 min 5 s`.
 *
 * @param {number} ms
 */
export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${number(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/**
 * Returns the time that something takes so far, such as `12 s` or `2 min 5 s`.
 *
 * @param {number} ms
 */
export function elapsed(ms) {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1000))} s` : duration(ms);
}

/**
 * Returns a size such as `812 B`, `6.1 kB` or `1.2 MB`.
 *
 * @param {number} n
 */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  if (n < 1e9) return `${(n / 1e6).toFixed(1)} MB`;
  return `${(n / 1e9).toFixed(1)} GB`;
}

/**
 * Returns a large number in short form, such as `4.2k` or `1.3M`.
 *
 * @param {number} n
 */
export function short(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

/** @param {number|undefined|null} dollars */
export function cost(dollars) {
  if (!dollars) return '';
  if (dollars < 0.001) return '<$0.001';
  return `$${dollars.toFixed(dollars < 1 ? 3 : 2)}`;
}

/**
 * Returns a local time: the clock if it is today, otherwise the day, too.
 *
 * @param {number} ms
 * @param {number} [now]
 */
export function time(ms, now = Date.now()) {
  const sameDay = new Date(ms).toDateString() === new Date(now).toDateString();
  return (sameDay ? clock : dayAndClock).format(ms);
}

/** @param {number} ms */
export function exactTime(ms) {
  return exact.format(ms);
}

/**
 * Returns how long ago a time was, such as `5 min ago`.
 *
 * @param {number} ms
 * @param {number} [now]
 */
export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return time(ms, now);
}

/**
 * Returns the first and last characters of a long id.
 *
 * @param {string} id
 */
export function shortId(id) {
  return id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-4)}` : id;
}

/**
 * Returns the first line of a text, cut at a number of characters.
 *
 * @param {string} text
 * @param {number} [limit]
 */
export function firstLine(text, limit = 160) {
  const line = text.trimStart().split('\n', 1)[0] ?? '';
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

const BIDI = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** @type {Record<number, string>} */
const NAMES = { 0: '⟨NUL⟩', 7: '⟨BEL⟩', 8: '⟨BS⟩', 13: '⟨CR⟩', 27: '⟨ESC⟩', 127: '⟨DEL⟩' };

/**
 * Returns the text with control characters as their name (`⟨ESC⟩`) and with bidirectional overrides
 * and other invisible characters as their code (`⟨U+202E⟩`). Line ends and tabs stay.
 *
 * @param {string} text
 */
export function visible(text) {
  return text
    .replace(/\r\n/g, '\n')
    .replace(CONTROL, (character) => NAMES[character.charCodeAt(0)] ?? codeOf(character.charCodeAt(0)))
    .replace(BIDI, (character) => codeOf(character.codePointAt(0) ?? 0));
}

/** @param {number} code */
function codeOf(code) {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}
