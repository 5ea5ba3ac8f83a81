/**
 * The spark of a run in a list: a bar for each program, high if it took long, red if it failed. The
 * events are read when the row comes into view.
 *
 * @import {RunLine} from '../types.js'
 *
 * @typedef {{updated: number, bars: {ms: number, isFailed: boolean, label: string}[], tools: string[]}} Spark
 */

import { api } from '../app.js';
import { fill, h, svg } from '../dom.js';
import { count } from '../format.js';

const BARS = 24;
const PARALLEL = 2;

export class Sparks {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    /** @type {Map<string, Spark>} */
    this.known = new Map();
    /** @type {{run: RunLine, element: HTMLElement}[]} */
    this.queue = [];
    this.running = 0;
    /** @type {WeakMap<Element, RunLine>} */
    this.runOf = new WeakMap();
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const run = this.runOf.get(entry.target);
        if (!entry.isIntersecting || !run) continue;
        this.observer.unobserve(entry.target);
        this.queue.push({ run, element: /** @type {HTMLElement} */ (entry.target) });
        this.work();
      }
    });
    signal.addEventListener('abort', () => this.observer.disconnect());
  }

  /**
   * @param {string} id
   * @returns {string[]|null}
   */
  toolsOf(id) {
    return this.known.get(id)?.tools ?? null;
  }

  /** @param {RunLine} run */
  cell(run) {
    const element = h('span', { class: 'spark' });
    const spark = this.known.get(run.id);
    if (spark) drawSpark(element, spark);
    if (run.steps > 0 && spark?.updated !== run.updated) {
      this.runOf.set(element, run);
      this.observer.observe(element);
    }
    return element;
  }

  work() {
    while (this.running < PARALLEL) {
      const next = this.queue.shift();
      if (!next) return;
      if (!next.element.isConnected) continue;
      this.running += 1;
      void this.load(next.run, next.element).finally(() => {
        this.running -= 1;
        this.work();
      });
    }
  }

  /**
   * @param {RunLine} run
   * @param {HTMLElement} element
   */
  async load(run, element) {
    try {
      const { events } = await api.events(run.id, 0, this.signal);
      /** @type {Map<string, string>} */
      const labels = new Map();
      const bars = [];
      for (const event of events) {
        const key = `${event.run_id} ${event.step}.${event.call}`;
        if (event.type === 'tool_start') labels.set(key, event.label ?? 'wat');
        if (event.type === 'tool_result') bars.push({ ms: event.dur_ms ?? 0, isFailed: !event.success, label: labels.get(key) ?? 'wat' });
      }
      const spark = { updated: run.updated, bars, tools: [...new Set(bars.map((bar) => bar.label))] };
      this.known.set(run.id, spark);
      drawSpark(element, spark);
    } catch { /* the row has no spark */ }
  }
}

/**
 * @param {HTMLElement} element
 * @param {Spark} spark
 */
function drawSpark(element, spark) {
  const bars = spark.bars.slice(-BARS);
  const longest = Math.max(1, ...bars.map((bar) => bar.ms));
  const failed = spark.bars.filter((bar) => bar.isFailed).length;
  const text = `${count(spark.bars.length, 'call')}${failed > 0 ? `, ${failed} failed` : ''}: ${spark.tools.slice(0, 6).join(', ')}`;
  fill(element, svg('svg', { width: BARS * 4, height: 18, role: 'img', 'aria-label': text }, svg('title', null, text), bars.map((bar, i) => {
    const height = 4 + 14 * Math.sqrt(bar.ms / longest);
    return svg('rect', { class: bar.isFailed ? 'failed' : null, x: i * 4, y: 18 - height, width: 3, height, rx: 1 });
  })));
}
