/**
 * What the runs used: tokens and cost by day, model and agent.
 *
 * @import {RunLine} from '../types.js'
 */

import { isAbort } from '../api.js';
import { api } from '../app.js';
import { fill, h } from '../dom.js';
import { cost, count, number, short, visible } from '../format.js';
import { emptyState, loadError, skeleton } from '../parts/bits.js';
import { View } from '../view.js';

const PAGE = 500;
/** The most runs that are read. */
const MAX_RUNS = 5000;
const DAYS = 30;
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });

/** @typedef {{runs: number, prompt: number, cached: number, completion: number, cost: number}} Sum */

class UsageView extends View {
  constructor() {
    super();
    this.content = h('div', { class: 'page' }, skeleton(10));
  }

  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Usage');
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Usage')), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Usage' }, this.content));
    void this.load();
  }

  async load() {
    const since = Date.now() - DAYS * 86_400_000;
    /** @type {RunLine[]} */
    const runs = [];
    try {
      for (let before = /** @type {string|undefined} */ (undefined); runs.length < MAX_RUNS;) {
        const page = await api.runs({ limit: PAGE, before }, this.signal);
        runs.push(...page.runs.filter((run) => run.created >= since));
        before = page.next ?? undefined;
        if (!before || (page.runs.at(-1)?.created ?? 0) < since) break;
      }
    } catch (error) {
      if (!isAbort(error)) fill(this.content, loadError(error, () => void this.load()));
      return;
    }
    if (runs.length === 0) {
      fill(this.content, emptyState('usage', `No runs in the last ${DAYS} days`, h('p', null, 'The tokens and the cost of each run are counted here once it has ended.')));
      return;
    }
    fill(this.content, h('p', { class: 'muted' }, `The last ${count(runs.length, 'run')} of at most ${DAYS} days. What a child run used is part of the run that started it.`),
      table('By day', 'Day', sums(runs, (run) => day.format(run.created))), table('By model', 'Model', sums(runs, (run) => run.model || 'none')), table('By agent', 'Agent', sums(runs, (run) => run.agent || 'none')));
  }
}

/**
 * @param {RunLine[]} runs
 * @param {(run: RunLine) => string} keyOf
 */
function sums(runs, keyOf) {
  /** @type {Map<string, Sum>} */
  const all = new Map();
  for (const run of runs) {
    const key = keyOf(run);
    const sum = all.get(key) ?? { runs: 0, prompt: 0, cached: 0, completion: 0, cost: 0 };
    const { prompt = 0, cached = 0, completion = 0, cost: dollars = 0 } = run.usage ?? {};
    all.set(key, { runs: sum.runs + 1, prompt: sum.prompt + prompt, cached: sum.cached + cached, completion: sum.completion + completion, cost: sum.cost + dollars });
  }
  return all;
}

/**
 * @param {string} title
 * @param {string} label
 * @param {Map<string, Sum>} rows
 */
function table(title, label, rows) {
  const heads = ['Runs', 'Tokens sent', 'Cached', 'Written', 'Cost'];
  return h('section', { class: 'card', 'aria-label': title }, h('header', null, h('h2', null, title)), h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': `Table ${title.toLowerCase()}` }, h('table', { class: 'usage' },
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, label), heads.map((text) => h('th', { scope: 'col', class: 'align-end' }, text)))),
    h('tbody', null, [...rows].map(([key, sum]) => h('tr', null, h('th', { scope: 'row' }, visible(key)),
      h('td', { class: 'align-end' }, number(sum.runs)), [sum.prompt, sum.cached, sum.completion].map((tokens) => h('td', { class: 'align-end', title: number(tokens) }, short(tokens))), h('td', { class: 'align-end nowrap' }, cost(sum.cost) || '–')))))));
}

customElements.define('w-usage', UsageView);
