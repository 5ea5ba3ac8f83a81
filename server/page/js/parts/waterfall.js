/**
 * The waterfall of a run: a row for each step, call, host call and note, with its time to scale.
 *
 * @import {Row} from '../run-rows.js'
 * @import {RunFeed} from '../run-feed.js'
 * @import {RowElement} from './virtual-list.js'
 */

import { fill, h, setText } from '../dom.js';
import { duration } from '../format.js';
import { axisMarks, barOf, RunRows } from '../run-rows.js';
import { isRunEnded } from '../run-model.js';
import { icon } from './icon.js';
import { drawRowText } from './waterfall-row.js';
import { VirtualList } from './virtual-list.js';

const ROW = 30;
const MIN_SPAN = 20;
const PAGE = 12;

export class Waterfall {
  /**
   * @param {{onSelect: (row: Row, isChosen: boolean) => void, onFollow: (isFollowing: boolean) => void}} actions
   */
  constructor(actions) {
    this.actions = actions;
    this.model = new RunRows();
    /** @type {RunFeed|null} */
    this.feed = null;
    this.selected = '';
    this.isFollowing = false;
    /** If set, later rows are dimmed: the replay has not reached them. */
    this.replayKey = '';
    this.isWindowed = false;
    this.domain = { start: 0, end: 1 };
    this.axis = h('div', { class: 'wf-axis', 'aria-hidden': 'true' });
    this.scroller = h('div', {
      class: 'wf', role: 'treegrid', tabindex: '0', 'aria-label': 'Steps of the run', 'aria-colcount': '3',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event), onclick: (/** @type {MouseEvent} */ event) => this.onClick(event),
      onwheel: () => this.setFollowing(false), ontouchmove: () => this.setFollowing(false),
    });
    this.element = h('div', { class: 'wf-frame' }, this.axis, this.scroller);
    /** @type {VirtualList<Row>} */
    this.list = new VirtualList(this.scroller, ROW, { keyOf: (row) => row.key, create: (row) => this.createRow(row), onDraw: (first, last) => this.fitTime(first, last), onDrawn: () => this.drawActive() });
  }

  get rows() {
    return this.model.rows;
  }

  /**
   * @param {RunFeed} feed
   * @param {number} from
   */
  update(feed, from) {
    this.feed = feed;
    this.model.update(feed.state, feed.hostCalls, from);
    this.list.setRows(this.model.rows);
    this.scroller.setAttribute('aria-rowcount', String(this.rows.length));
    if (this.isFollowing) requestAnimationFrame(() => this.list.revealEnd());
  }

  /** Draws the bars of running steps again. */
  tick() {
    if (this.feed && !isRunEnded(this.feed.state)) this.list.draw();
  }

  /** @param {boolean} isFollowing */
  setFollowing(isFollowing) {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.actions.onFollow(isFollowing);
    if (isFollowing) this.list.revealEnd();
  }

  /** @param {boolean} isWindowed If true, the time scale is that of the rows in view. */
  setWindowed(isWindowed) {
    this.isWindowed = isWindowed;
    this.list.draw();
  }

  /**
   * @param {string} key
   * @param {{reveal?: boolean}} [options]
   */
  select(key, { reveal = false } = {}) {
    this.selected = key;
    const index = this.model.indexOf(key);
    if (reveal && index >= 0) this.list.reveal(index);
    else this.list.draw();
  }

  /** Names the selected row for screen readers, if it is drawn. */
  drawActive() {
    const isDrawn = this.list.drawn.has(this.selected);
    const id = isDrawn ? rowId(this.selected) : null;
    if (this.scroller.getAttribute('aria-activedescendant') === id) return;
    if (id) this.scroller.setAttribute('aria-activedescendant', id);
    else this.scroller.removeAttribute('aria-activedescendant');
  }

  /**
   * @param {number} first
   * @param {number} last
   */
  fitTime(first, last) {
    const { feed } = this;
    if (!feed) return;
    const now = isRunEnded(feed.state) ? feed.state.last : Date.now();
    let start = feed.state.started;
    let end = Math.max(feed.state.last, isRunEnded(feed.state) ? 0 : now);
    if (this.isWindowed) {
      const bars = this.rows.slice(first, last).map((row) => barOf(row, now)).filter((bar) => bar !== null);
      if (bars.length > 0) {
        start = Math.min(...bars.map((bar) => bar.start));
        end = Math.max(...bars.map((bar) => bar.end));
      }
    }
    this.domain = { start, end: Math.max(end, start + MIN_SPAN) };
    this.drawAxis();
  }

  drawAxis() {
    const span = this.domain.end - this.domain.start;
    const offset = this.feed ? this.domain.start - this.feed.state.started : 0;
    const marks = axisMarks(span, Math.max(2, Math.floor((this.axis.clientWidth * 0.42) / 76)));
    const key = `${Math.round(span / 50)} ${marks.length} ${offset}`;
    if (this.axis.dataset.key === key) return;
    this.axis.dataset.key = key;
    fill(this.axis, h('span', { class: 'wf-axis-track' }, marks.map((at) => {
      const mark = h('i', null, at === 0 || offset === 0 ? (at + offset === 0 ? '0' : duration(at + offset)) : `+${duration(at)}`);
      mark.style.left = `${(at / span) * 100}%`;
      return mark;
    })));
  }

  /**
   * @param {Row} row
   * @returns {RowElement<Row>}
   */
  createRow(row) {
    const bar = h('i', { class: 'wf-bar' });
    const label = h('span', { class: 'wf-label', role: 'gridcell' });
    const toggle = h('span', { class: 'wf-toggle', 'aria-hidden': 'true' }, icon('right'));
    const text = h('span', { class: 'wf-text' });
    const time = h('span', { class: 'wf-time', role: 'gridcell' });
    label.append(toggle, text);
    const element = h('div', { class: `wf-row ${row.kind}`, role: 'row', id: rowId(row.key), 'data-key': row.key, 'aria-level': row.depth + 1 },
      label, h('span', { class: 'wf-track', role: 'gridcell', 'aria-label': 'Time bar' }, bar), time);
    element.style.setProperty('--depth', String(row.depth));
    let drawn = '';
    return {
      element,
      update: (current, index) => {
        const now = this.feed && isRunEnded(this.feed.state) ? this.feed.state.last : Date.now();
        const span = barOf(current, now);
        bar.hidden = span === null || (current.kind === 'step' && current.step.isAnswer && span.end - span.start <= 0);
        if (span) {
          const total = this.domain.end - this.domain.start;
          bar.className = `wf-bar ${span.kind}`;
          bar.style.left = `${Math.max(0, ((span.start - this.domain.start) / total) * 100)}%`;
          bar.style.width = `${Math.max(0, (Math.min(span.end, this.domain.end) - Math.max(span.start, this.domain.start)) / total) * 100}%`;
          const exact = current.call && !current.host ? current.call.durMs ?? span.end - span.start : span.end - span.start;
          setText(time, current.kind === 'step' || current.call ? duration(exact) : '');
        } else {
          setText(time, '');
        }
        const isSelected = current.key === this.selected;
        const isLater = this.replayKey !== '' && index > this.model.indexOf(this.replayKey);
        if (element.getAttribute('aria-selected') !== String(isSelected)) element.setAttribute('aria-selected', String(isSelected));
        element.setAttribute('aria-rowindex', String(index + 1));
        element.classList.toggle('later', isLater);
        if (current.isExpandable) element.setAttribute('aria-expanded', String(current.isExpanded));
        else element.removeAttribute('aria-expanded');
        toggle.classList.toggle('open', current.isExpanded);
        toggle.classList.toggle('none', !current.isExpandable);
        drawn = drawRowText(text, current, drawn);
      },
    };
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const target = /** @type {Element} */ (event.target);
    const key = /** @type {HTMLElement|null} */ (target.closest('.wf-row'))?.dataset.key;
    const row = this.rows.find((one) => one.key === key);
    if (!row || target.closest('button')) return;
    if (target.closest('.wf-toggle') && row.isExpandable) this.toggle(row, !row.isExpanded);
    else {
      this.select(row.key);
      this.actions.onSelect(row, true);
    }
  }

  /**
   * @param {Row} row
   * @param {boolean} isOpen
   */
  toggle(row, isOpen) {
    if (!this.feed || !row.isExpandable || row.isExpanded === isOpen) return;
    this.model.toggle(row.key, isOpen);
    this.update(this.feed, row.rootStep);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const index = this.model.indexOf(this.selected);
    const row = this.rows[index];
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + PAGE, PageUp: index - PAGE, Home: 0, End: this.rows.length - 1 };
    const move = moves[event.key];
    if (move !== undefined) {
      const next = this.rows[Math.max(0, Math.min(this.rows.length - 1, move))];
      this.setFollowing(false);
      if (next) {
        this.select(next.key, { reveal: true });
        this.actions.onSelect(next, false);
      }
    } else if (event.key === 'ArrowRight' && row && this.replayKey === '') this.toggle(row, true);
    else if (event.key === 'ArrowLeft' && row && this.replayKey === '') this.toggle(row, false);
    else if ((event.key === 'Enter' || event.key === ' ') && row) this.actions.onSelect(row, true);
    else return;
    event.preventDefault();
  }
}

/** @param {string} key */
function rowId(key) {
  return `row-${key.replace(/[^\w.-]/g, '_')}`;
}
