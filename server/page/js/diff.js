/**
 * Compares two texts line by line. It has no DOM.
 *
 * @typedef {{kind: 'same'|'removed'|'added', text: string, before: number|null, after: number|null}} DiffLine
 */

const MAX_CELLS = 4_000_000;

/**
 * Returns the lines of both texts in order. Line numbers are counted from 1.
 *
 * @param {string} before
 * @param {string} after
 * @returns {DiffLine[]}
 */
export function diffLines(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  /** @type {DiffLine[]} */
  const out = [];
  const same = (/** @type {number} */ i, /** @type {number} */ j) => out.push({ kind: 'same', text: a[i] ?? '', before: i + 1, after: j + 1 });
  for (let i = 0; i < head; i += 1) same(i, i);
  out.push(...diffMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), head));
  for (let i = tail; i > 0; i -= 1) same(a.length - i, b.length - i);
  return out;
}

/**
 * Finds a longest common subsequence by a table of lengths.
 *
 * @param {string[]} a
 * @param {string[]} b
 * @param {number} offset
 * @returns {DiffLine[]}
 */
function diffMiddle(a, b, offset) {
  /** @type {DiffLine[]} */
  const out = [];
  const removed = (/** @type {number} */ i) => out.push({ kind: 'removed', text: a[i] ?? '', before: offset + i + 1, after: null });
  const added = (/** @type {number} */ j) => out.push({ kind: 'added', text: b[j] ?? '', before: null, after: offset + j + 1 });
  if (a.length * b.length > MAX_CELLS) {
    a.forEach((_, i) => removed(i));
    b.forEach((_, j) => added(j));
    return out;
  }
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = a[i] === b[j]
        ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
        : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
    }
  }
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ kind: 'same', text: a[i] ?? '', before: offset + i + 1, after: offset + j + 1 });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && (lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))) {
      removed(i);
      i += 1;
    } else {
      added(j);
      j += 1;
    }
  }
  return out;
}
