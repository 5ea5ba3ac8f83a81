/**
 * The programs that a run in a list called. Its events are read when the row comes into view.
 *
 * @import {RunLine} from '../types.js'
 *
 * @typedef {{calls: number, failed: number}} Use
 * @typedef {{updated: number, uses: Map<string, Use>}} Called The programs by name.
 */

import { api } from '../app.js';
import { h, setText } from '../dom.js';
import { number, visible } from '../format.js';

const PARALLEL = 2;

export class CalledPrograms {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    /** @type {Map<string, Called>} */
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
    const uses = this.known.get(id)?.uses;
    return uses ? [...uses.keys()] : null;
  }

  /** @param {RunLine} run */
  cell(run) {
    const element = h('span', { class: 'called ellipsis' });
    const called = this.known.get(run.id);
    if (called) drawUses(element, called.uses);
    if (run.steps > 0 && called?.updated !== run.updated) {
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
      /** @type {Map<string, Use>} */
      const uses = new Map();
      for (const event of events) {
        const key = `${event.run_id} ${event.step}.${event.call}`;
        if (event.type === 'tool_start') labels.set(key, event.source === 'catalog' ? event.label ?? '' : 'program');
        if (event.type !== 'tool_result') continue;
        const label = labels.get(key) ?? 'program';
        const { calls, failed } = uses.get(label) ?? { calls: 0, failed: 0 };
        uses.set(label, { calls: calls + 1, failed: failed + (event.success ? 0 : 1) });
      }
      this.known.set(run.id, { updated: run.updated, uses });
      drawUses(element, uses);
    } catch { /* the row names no programs */ }
  }
}

/**
 * @param {HTMLElement} element
 * @param {Map<string, Use>} uses
 */
function drawUses(element, uses) {
  const text = [...uses].map(([label, { calls, failed }]) => `${label}${calls > 1 ? ` ×${number(calls)}` : ''}${failed > 0 ? ` (${number(failed)} failed)` : ''}`).join(', ');
  element.title = visible(text);
  setText(element, visible(text));
}
