/**
 * The list of runs: newest first, filtered and sorted, live without a jump of what one reads.
 *
 * @import {Route} from '../router.js'
 * @import {RunLine} from '../types.js'
 */

import { errorText, isAbort } from '../api.js';
import { api, live } from '../app.js';
import { debounce, fill, h } from '../dom.js';
import { isEnded } from '../events.js';
import { cost, count, duration, number, short, visible } from '../format.js';
import { command, emptyState, endText, notice, skeleton, statusLabel, timeLabel } from '../parts/bits.js';
import { CalledPrograms } from '../parts/called-programs.js';
import { href, navigate } from '../router.js';
import { splitAttachments } from '../run-text.js';
import { filterRuns, sortRuns } from '../runs-list.js';
import { View } from '../view.js';

const STATUSES = ['running', 'parked', 'done', 'failed', 'stopped', 'cancelled', 'blocked', 'queued'];
/** @type {{id: string, label: string, isNumber?: boolean}[]} */
const COLUMNS = [
  { id: 'created', label: 'Started' }, { id: 'duration', label: 'Time', isNumber: true }, { id: 'steps', label: 'Steps', isNumber: true },
  { id: 'tokens', label: 'Tokens', isNumber: true }, { id: 'cost', label: 'Cost', isNumber: true },
];
/** The filters that a phone shows on request. */
const FILTERS = ['status', 'agent', 'tool', 'age', 'cost'];
const PAGE = 50;

class RunsView extends View {
  constructor() {
    super();
    /** @type {Map<string, RunLine>} */
    this.runs = new Map();
    /** @type {RunLine[]} Runs that wait behind the button until a person scrolls to the top. */
    this.held = [];
    /** @type {string|null} */
    this.next = null;
    this.isLoaded = false;
    this.loaded = '';
    this.error = '';
    this.programs = new CalledPrograms(this.signal);
    /** @type {Map<string, {element: HTMLTableRowElement, key: string}>} */
    this.rows = new Map();
    const change = debounce(() => this.writeQuery(), 200);
    this.search = h('input', { type: 'search', placeholder: 'Search messages and answers', 'aria-label': 'Search runs', oninput: change });
    this.status = h('select', { 'aria-label': 'Status', onchange: () => this.writeQuery() }, h('option', { value: '' }, 'All statuses'), STATUSES.map((one) => h('option', { value: one }, one === 'parked' ? 'waiting' : one)));
    this.agent = h('select', { 'aria-label': 'Agent', onchange: () => this.writeQuery() });
    this.tool = h('input', { type: 'text', placeholder: 'Program', 'aria-label': 'Program that the run called', oninput: change, list: 'runs-tools' });
    this.age = h('select', { 'aria-label': 'Time', onchange: () => this.writeQuery() }, h('option', { value: '' }, 'Any time'), h('option', { value: '1' }, 'Last hour'), h('option', { value: '24' }, 'Last day'), h('option', { value: '168' }, 'Last week'));
    this.cost = h('input', { type: 'number', min: '0', step: '0.001', placeholder: 'Cost from $', 'aria-label': 'Minimum cost in dollars', oninput: change });
    this.filterButton = h('button', { class: 'phone-only', 'aria-expanded': 'false', onclick: () => this.filterButton.setAttribute('aria-expanded', String(this.filters.classList.toggle('open'))) });
    this.more = h('button', { onclick: () => void this.loadMore(), hidden: true }, 'Load more');
    this.fresh = h('button', { class: 'primary fresh', hidden: true, onclick: () => this.release(true) });
    this.summary = h('p', { class: 'muted small', role: 'status' });
    this.body = h('tbody');
    this.headers = h('tr');
    this.table = h('div', { class: 'table-scroll' }, h('table', { class: 'runs' }, h('thead', null, this.headers), this.body));
    this.content = h('div');
    this.scroller = h('div', { class: 'scroll', onscroll: () => { if (this.scroller.scrollTop < 10) this.release(false); } },
      h('div', { class: 'page wide' }, this.filters = h('div', { class: 'filters', role: 'search', 'aria-label': 'Filter runs' }, this.search, this.filterButton, this.status, this.agent, this.tool, this.age, this.cost), this.content,
        h('div', { class: 'row' }, this.summary, h('span', { class: 'end' }, this.more))));
  }

  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Runs');
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Runs')), h('div', { class: 'fresh-holder' }, this.fresh), this.scroller);
    this.listen(live, 'change', () => this.onLive());
    fill(this.content, skeleton(10));
  }

  /** @param {Route} route */
  open(route) {
    const { query } = route;
    if (document.activeElement !== this.search) this.search.value = query.get('q') ?? '';
    this.status.value = query.get('status') ?? '';
    this.age.value = query.get('age') ?? '';
    if (document.activeElement !== this.tool) this.tool.value = query.get('tool') ?? '';
    if (document.activeElement !== this.cost) this.cost.value = query.get('cost') ?? '';
    this.drawAgents(query.get('agent') ?? '');
    const active = FILTERS.filter((name) => query.get(name)).length;
    this.filterButton.textContent = active > 0 ? `Filters (${active})` : 'Filters';
    const key = JSON.stringify([query.get('q'), query.get('status')]);
    if (key !== this.loaded) {
      this.loaded = key;
      void this.load();
    } else {
      this.draw();
    }
  }

  writeQuery() {
    const { query } = this.route;
    navigate(href('runs', [], {
      q: this.search.value.trim(), status: this.status.value, agent: this.agent.value, tool: this.tool.value.trim(), age: this.age.value, cost: this.cost.value,
      sort: query.get('sort') ?? '', order: query.get('order') ?? '',
    }), { replace: true });
  }

  async load() {
    const { query } = this.route;
    try {
      const page = await api.runs({ q: query.get('q') ?? '', status: query.get('status') ?? '', limit: PAGE }, this.signal);
      this.runs = new Map(page.runs.map((run) => [run.id, run]));
      this.next = page.next;
      this.held = [];
      this.error = '';
    } catch (error) {
      if (isAbort(error)) return;
      this.error = errorText(error);
    }
    this.isLoaded = true;
    this.draw();
  }

  async loadMore() {
    if (!this.next) return;
    const { query } = this.route;
    this.more.disabled = true;
    try {
      const page = await api.runs({ q: query.get('q') ?? '', status: query.get('status') ?? '', limit: PAGE, before: this.next }, this.signal);
      for (const run of page.runs) this.runs.set(run.id, run);
      this.next = page.next;
    } finally {
      this.more.disabled = false;
    }
    this.draw();
  }

  onLive() {
    if (!this.isLoaded) return;
    const { query } = this.route;
    const isAtTop = this.scroller.scrollTop < 10;
    for (const run of live.runs) {
      if (this.runs.has(run.id)) this.runs.set(run.id, run);
      else if (!query.get('q') && (!query.get('status') || query.get('status') === run.status) && this.isNewer(run)) {
        if (isAtTop) this.runs.set(run.id, run);
        else this.held = [...this.held.filter((one) => one.id !== run.id), run];
      }
    }
    this.fresh.hidden = this.held.length === 0;
    this.fresh.textContent = `Show ${count(this.held.length, 'new run')}`;
    this.draw();
  }

  /** @param {RunLine} run */
  isNewer(run) {
    let newest = 0;
    for (const one of this.runs.values()) newest = Math.max(newest, one.created);
    return run.created >= newest || this.runs.size === 0;
  }

  /** @param {boolean} scroll */
  release(scroll) {
    if (this.held.length > 0) {
      for (const run of this.held) this.runs.set(run.id, run);
      this.held = [];
      this.fresh.hidden = true;
      this.draw();
    }
    if (scroll) this.scroller.scrollTop = 0;
  }

  /** @param {string} selected */
  drawAgents(selected) {
    const agents = [...new Set([...this.runs.values()].map((run) => run.agent).concat(selected || []))].sort();
    if (this.agent.dataset.key !== agents.join()) {
      this.agent.dataset.key = agents.join();
      fill(this.agent, h('option', { value: '' }, 'All agents'), agents.map((one) => h('option', { value: one }, visible(one))));
    }
    this.agent.value = selected;
  }

  draw() {
    if (!this.isLoaded) return;
    const { query } = this.route;
    this.drawAgents(query.get('agent') ?? '');
    const sort = query.get('sort') ?? 'created';
    const order = query.get('order') ?? 'desc';
    const tools = (/** @type {string} */ id) => this.programs.toolsOf(id);
    const shown = sortRuns(filterRuns([...this.runs.values()], {
      status: query.get('status') ?? '', agent: query.get('agent') ?? '', tool: query.get('tool') ?? '', hours: Number(query.get('age') ?? 0), cost: Number(query.get('cost') ?? 0), tools,
    }), sort, order);
    this.more.hidden = this.next === null;
    if (this.error !== '') {
      fill(this.content, notice('bad', this.error), h('button', { onclick: () => void this.load() }, 'Load again'));
      return;
    }
    if (shown.length === 0) {
      this.drawEmpty();
      return;
    }
    this.drawHeaders(sort, order);
    if (this.table.parentElement !== this.content) fill(this.content, this.table);
    this.drawRows(shown);
    this.summary.textContent = `${count(shown.length, 'run')}${this.next ? ', more on the server' : ''}`;
  }

  drawEmpty() {
    this.summary.textContent = '';
    const isFiltered = [...this.route.query.keys()].some((key) => key !== 'sort' && key !== 'order');
    fill(this.content, isFiltered
      ? emptyState('search', 'No run matches', h('p', null, this.next ? 'Remove a filter, or load more runs.' : 'Remove a filter.'), h('a', { class: 'button', href: href('runs') }, 'Remove all filters'))
      : emptyState('runs', 'No runs yet', h('p', null, 'Send a message in a chat, or start a run from the terminal:'), command('wattle run "Say hello."'), h('a', { class: 'button', href: href('chat') }, 'Start a chat')));
  }

  /**
   * @param {string} sort
   * @param {string} order
   */
  drawHeaders(sort, order) {
    const key = `${sort} ${order} ${this.route.query.toString()}`;
    if (this.headers.dataset.key === key) return;
    this.headers.dataset.key = key;
    const query = Object.fromEntries(this.route.query);
    fill(this.headers, h('th', { scope: 'col' }, 'Status'), h('th', { scope: 'col' }, 'Message'), h('th', { scope: 'col' }, 'Programs'), COLUMNS.map((column) => {
      const isSorted = column.id === sort;
      const next = isSorted && order === 'desc' ? 'asc' : 'desc';
      return h('th', { scope: 'col', class: column.isNumber ? 'align-end' : null, 'aria-sort': isSorted ? (order === 'asc' ? 'ascending' : 'descending') : null },
        h('button', { class: 'sort', onclick: () => navigate(href('runs', [], { ...query, sort: column.id, order: next }), { replace: true }) }, column.label, h('span', { 'aria-hidden': 'true' }, isSorted ? (order === 'asc' ? ' ↑' : ' ↓') : '')));
    }));
  }

  /** @param {RunLine[]} shown */
  drawRows(shown) {
    const keep = new Set(shown.map((run) => run.id));
    for (const [id, row] of this.rows) {
      if (keep.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    shown.forEach((run, i) => {
      const key = `${run.status} ${run.updated} ${run.steps}${isEnded(run.status) ? '' : Date.now()}`;
      let row = this.rows.get(run.id);
      if (!row) {
        row = { element: h('tr', { onclick: (/** @type {MouseEvent} */ event) => {
          if (!(/** @type {Element} */ (event.target).closest('a, button')) && !getSelection()?.toString()) navigate(href('run', [run.id]));
        } }), key: '' };
        this.rows.set(run.id, row);
      }
      if (row.key !== key) {
        row.key = key;
        fill(row.element, this.cells(run));
      }
      if (this.body.children[i] !== row.element) this.body.insertBefore(row.element, this.body.children[i] ?? null);
    });
  }

  /** @param {RunLine} run */
  cells(run) {
    const tokens = (run.usage?.prompt ?? 0) + (run.usage?.completion ?? 0);
    const end = isEnded(run.status) ? run.updated : Date.now();
    const result = endText(run) || run.result;
    return [
      h('td', null, statusLabel(run)),
      h('td', { class: 'message' }, h('a', { class: 'ellipsis', href: href('run', [run.id]), dir: 'auto' }, visible(splitAttachments(run.prompt).text)),
        result ? h('span', { class: 'ellipsis muted small', dir: 'auto' }, visible(plainText(result))) : null),
      h('td', null, this.programs.cell(run)),
      h('td', { class: 'nowrap' }, timeLabel(run.created)),
      h('td', { class: 'align-end nowrap' }, duration(end - run.created)),
      h('td', { class: 'align-end' }, number(run.steps), h('span', { class: 'phone-only' }, run.steps === 1 ? ' step' : ' steps')),
      h('td', { class: 'align-end', title: number(tokens) }, short(tokens)),
      h('td', { class: 'align-end' }, cost(run.usage?.cost)),
    ];
  }
}

/**
 * Returns the start of an answer without the marks of Markdown.
 *
 * @param {string} text
 */
function plainText(text) {
  return text.slice(0, 300).replace(/[*_`#|>]+|:?-{2,}:?/g, ' ').replace(/\s+/g, ' ').trim();
}

customElements.define('w-runs', RunsView);
