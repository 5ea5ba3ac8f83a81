/**
 * A list of rows of one height that draws only those in view, so that 10,000 rows scroll smoothly.
 * An element stays the same for as long as its row is in view.
 *
 * @template Row
 * @typedef {object} RowElement
 * @property {HTMLElement} element
 * @property {(row: Row, index: number) => void} update
 */

import { h, oncePerFrame } from '../dom.js';

const OVERSCAN = 8;

/** @template Row */
export class VirtualList {
  /**
   * @param {HTMLElement} scroller
   * @param {number} rowHeight
   * @param {{keyOf: (row: Row) => string, create: (row: Row) => RowElement<Row>, onDraw?: (first: number, last: number) => void, onDrawn?: () => void}} options
   */
  constructor(scroller, rowHeight, options) {
    this.scroller = scroller;
    this.rowHeight = rowHeight;
    this.options = options;
    this.space = h('div', { class: 'virtual-space', role: 'rowgroup' });
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Map<string, RowElement<Row>>} */
    this.drawn = new Map();
    this.draw = oncePerFrame(() => this.drawNow());
    scroller.append(this.space);
    scroller.addEventListener('scroll', () => this.drawNow(), { passive: true });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(scroller);
  }

  dispose() {
    this.observer.disconnect();
  }

  /** @param {Row[]} rows */
  setRows(rows) {
    this.rows = rows;
    const height = `${rows.length * this.rowHeight}px`;
    if (this.space.style.height !== height) this.space.style.height = height;
    this.draw();
  }

  /** The indices of the first row in view and of the one after the last. */
  range() {
    const top = Math.max(0, this.scroller.scrollTop - this.space.offsetTop);
    const first = Math.floor(top / this.rowHeight);
    return [first, Math.min(this.rows.length, first + Math.ceil(this.scroller.clientHeight / this.rowHeight) + 1)];
  }

  drawNow() {
    const [from = 0, to = 0] = this.range();
    const first = Math.max(0, from - OVERSCAN);
    const last = Math.min(this.rows.length, to + OVERSCAN);
    this.options.onDraw?.(from, to);
    const keep = new Set();
    for (let i = first; i < last; i += 1) {
      const row = this.rows[i];
      if (row === undefined) continue;
      const key = this.options.keyOf(row);
      keep.add(key);
      let one = this.drawn.get(key);
      if (!one) {
        one = this.options.create(row);
        this.drawn.set(key, one);
        this.space.append(one.element);
      }
      const top = `translateY(${i * this.rowHeight}px)`;
      if (one.element.style.transform !== top) one.element.style.transform = top;
      one.update(row, i);
    }
    for (const [key, one] of this.drawn) {
      if (keep.has(key)) continue;
      one.element.remove();
      this.drawn.delete(key);
    }
    this.options.onDrawn?.();
  }

  /** @param {number} index */
  reveal(index) {
    const top = index * this.rowHeight;
    const view = this.scroller.clientHeight - this.space.offsetTop;
    const above = this.scroller.scrollTop - top;
    const below = top + this.rowHeight - this.scroller.scrollTop - view;
    // A row just outside comes in at the edge; one far away comes to the middle.
    if (Math.max(above, below) > this.rowHeight * 3) this.scroller.scrollTop = top - view / 2;
    else if (above > 0) this.scroller.scrollTop = top;
    else if (below > 0) this.scroller.scrollTop += below;
    this.drawNow();
  }

  revealEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}
