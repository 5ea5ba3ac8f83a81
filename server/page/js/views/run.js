/**
 * The view of a run: the waterfall, the inspector, and the replay.
 *
 * @import {Route} from '../router.js'
 * @import {Row} from '../run-rows.js'
 * @import {RunLine} from '../types.js'
 */

import { ApiError, isAbort } from '../api.js';
import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { isEnded } from '../events.js';
import { number, visible } from '../format.js';
import { isTyping } from '../keys.js';
import { approvalCard } from '../parts/approval-card.js';
import { emptyState, endNotice, releaseNotice, skeleton } from '../parts/bits.js';
import { askTexts } from '../parts/dialogs.js';
import { bestTab, Inspector } from '../parts/inspector.js';
import { busy, notify, notifyError } from '../parts/notify.js';
import { ReplayBar } from '../parts/replay-bar.js';
import { RunHeader } from '../parts/run-header.js';
import { Waterfall } from '../parts/waterfall.js';
import { href, navigate } from '../router.js';
import { RunFeed } from '../run-feed.js';
import { View } from '../view.js';

/** Host calls of longer runs are loaded only when a person opens the tab. */
const MANY_STEPS = 300;
const TICK_MS = 200;

class RunView extends View {
  constructor() {
    super();
    this.id_ = '';
    this.content = new AbortController();
    /** @type {RunFeed|null} */
    this.feed = null;
    /** @type {string[]} The step and the call that the address names, until their events arrive. */
    this.wanted = [];
    this.isNew = true;
    this.header = new RunHeader({
      onFollow: () => this.waterfall.setFollowing(!this.waterfall.isFollowing), onCancel: (button) => this.cancel(button),
      onFork: () => void this.fork(), onReplay: () => this.toggleReplay(),
    });
    this.waterfall = new Waterfall({ onSelect: (row, isChosen) => this.select(row, isChosen), onFollow: (isFollowing) => this.header.setFollowing(isFollowing) });
    this.inspector = new Inspector({ onClose: () => this.closeSheet() });
    this.replay = new ReplayBar({ onMove: (row, tab) => this.showMoment(row, tab), onClose: () => this.endReplay(), check: () => api.replay(this.id_) });
    this.scaleButton = h('button', { class: 'tiny', 'aria-pressed': 'false', title: 'Fit the time scale to the rows in view', onclick: () => this.setWindowed(!this.waterfall.isWindowed) }, 'Zoom to rows');
    this.notes = h('div', { class: 'run-notes stack' });
    this.body = h('div', { class: 'run-body' });
    this.pane = h('div', { class: 'run-pane' }, this.notes, this.waterfall.element, this.replay.element);
  }

  connectedCallback() {
    super.connectedCallback();
    this.append(this.header.element, this.body);
    this.listen(document, 'keydown', (event) => this.onKey(event));
    this.listen(live, 'change', () => {
      const line = live.runs.find((run) => run.id === this.id_);
      if (line) this.feed?.setLine(line);
    });
    const timer = setInterval(() => {
      if (!this.feed || isEnded(this.feed.line.status)) return;
      this.header.drawFacts(this.feed);
      this.waterfall.tick();
    }, TICK_MS);
    this.signal.addEventListener('abort', () => {
      clearInterval(timer);
      this.content.abort();
      this.waterfall.list.dispose();
    });
  }

  /** @param {Route} route */
  open(route) {
    const [id = '', ...path] = route.path;
    this.wanted = path;
    if (id !== this.id_) void this.load(id);
    else this.selectWanted();
  }

  /** @param {string} id */
  async load(id) {
    this.id_ = id;
    this.isNew = true;
    this.content.abort();
    this.content = new AbortController();
    this.feed = null;
    this.inspector.show(null, null);
    this.setTitle('Run');
    this.header.reset();
    fill(this.body, h('div', { class: 'page grow' }, skeleton(8)));
    if (id === '') {
      navigate(href('runs'), { replace: true });
      return;
    }
    try {
      const run = await api.run(id, this.content.signal);
      if (this.id_ === id) this.start(run);
    } catch (error) {
      if (isAbort(error)) return;
      const isMissing = error instanceof ApiError && error.status === 404;
      fill(this.body, emptyState('runs', isMissing ? 'This run does not exist' : 'The run could not be loaded', h('p', null, error instanceof Error ? error.message : ''),
        h('a', { class: 'button', href: href('runs') }, 'Show all runs')));
    }
  }

  /** @param {RunLine} run */
  start(run) {
    this.setTitle(visible(run.prompt.slice(0, 60)));
    this.feed = new RunFeed(api, run, this.content.signal, {
      onChange: (from) => this.onChange(from),
      onLine: (line) => this.onLine(line),
      onError: (error) => notifyError(error),
    }, { tree: true });
    fill(this.body, this.pane, this.inspector.element);
    this.waterfall.setFollowing(!isEnded(run.status) && this.wanted.length === 0);
    this.header.draw(this.feed);
    this.drawNotes();
    this.feed.start();
    if (run.steps <= MANY_STEPS) this.feed.loadHostCalls();
    else this.setWindowed(true);
  }

  /** @param {number} from */
  onChange(from) {
    const { feed } = this;
    if (!feed) return;
    this.waterfall.update(feed, from);
    this.selectWanted();
    if (this.waterfall.isFollowing && !this.isNarrow()) {
      const newest = this.waterfall.rows.findLast((row) => row.kind === 'step' || row.kind === 'call');
      if (newest && newest.key !== this.waterfall.selected) this.showRow(newest);
    }
    const selected = this.waterfall.rows[this.waterfall.model.indexOf(this.waterfall.selected)];
    if (selected) {
      this.inspector.show(feed, selected);
    } else if (this.isNew && this.wanted.length === 0 && feed.isLoaded && !this.isNarrow()) {
      const row = this.waterfall.rows.find((one) => one.call?.source === 'wat') ?? this.waterfall.rows[0];
      if (row) this.showRow(row);
      this.isNew = false;
    }
    if (feed.state.root.steps.length <= MANY_STEPS && !feed.signal.aborted && feed.isLoaded) feed.loadHostCalls();
    this.header.drawFacts(feed);
    this.drawNotes();
  }

  /** @param {RunLine} line */
  onLine(line) {
    if (this.feed) this.header.draw(this.feed);
    this.drawNotes();
    if (isEnded(line.status)) this.waterfall.list.draw();
  }

  /** Shows pending approvals, a reason to release, or the error, above the waterfall. */
  drawNotes() {
    const { feed } = this;
    if (!feed) return;
    const run = /** @type {import('../types.js').Run} */ (feed.line);
    const waiting = run.status === 'parked' ? run.waiting ?? [] : [];
    const key = JSON.stringify([run.status, run.reason, run.result, waiting, waiting.length > 0 && feed.state.lastSeq]);
    if (this.notes.dataset.key === key) return;
    this.notes.dataset.key = key;
    fill(this.notes,
      waiting.map((one) => {
        const card = approvalCard(run, one, (next) => feed.setLine(next));
        card.setState(feed.state);
        return card.element;
      }),
      run.status === 'parked' ? releaseNotice(run.reason, async () => { await api.release(run.id); await feed.refreshLine(); }) : null,
      endNotice(run, async (prompt) => navigate(href('run', [(await api.sendAgain(run, prompt)).id]))),
      h('div', { class: 'wf-tools row' }, this.scaleButton));
  }

  /** @param {boolean} isWindowed */
  setWindowed(isWindowed) {
    this.waterfall.setWindowed(isWindowed);
    this.scaleButton.setAttribute('aria-pressed', String(isWindowed));
  }

  isNarrow() {
    return matchMedia('(max-width: 1020px)').matches;
  }

  /**
   * @param {Row} row
   * @param {boolean} isChosen
   */
  select(row, isChosen) {
    this.isNew = false;
    this.waterfall.setFollowing(false);
    if (!this.isNarrow() || isChosen) this.inspector.show(this.feed, row, bestTab(row));
    if (isChosen && this.isNarrow()) {
      this.inspector.element.classList.add('open');
      /** @type {HTMLElement|null} */ (this.inspector.element.querySelector('.close'))?.focus();
    }
    this.writeAddress(row);
    if (this.replay.isOpen) this.replay.moveTo(row);
  }

  /** @param {Row} row */
  showRow(row) {
    this.waterfall.select(row.key, { reveal: true });
    this.inspector.show(this.feed, row, bestTab(row));
  }

  /** @param {Row} row */
  writeAddress(row) {
    if (row.step.key.includes('/')) return;
    history.replaceState(null, '', href('run', [this.id_, row.step.number, ...(row.call ? [row.call.number] : []), ...(row.host ? [row.host.number] : [])]));
  }

  /** Selects what the address names, once its events are there. */
  selectWanted() {
    const [step, call, host] = this.wanted;
    if (!step || !this.feed) return;
    const key = call ? `${step}.${call}` : step;
    const rows = this.waterfall.rows;
    const index = this.waterfall.model.indexOf(key);
    const row = host ? rows.slice(index).find((one) => one.host?.number === Number(host)) ?? rows[index] : rows[index];
    if (!row || row.key === this.waterfall.selected) return;
    if (!host || row.host) this.wanted = [];
    this.isNew = false;
    this.showRow(row);
    if (this.isNarrow()) this.inspector.element.classList.add('open');
  }

  closeSheet() {
    this.inspector.element.classList.remove('open');
    this.waterfall.scroller.focus();
  }

  /** @param {HTMLButtonElement} button */
  cancel(button) {
    void busy(button, async () => {
      await api.cancel(this.id_);
      await this.feed?.refreshLine();
      live.refresh();
    });
  }

  async fork() {
    const { feed } = this;
    if (!feed) return;
    const row = this.waterfall.rows[this.waterfall.model.indexOf(this.waterfall.selected)];
    const step = row ? Number.parseInt(row.key, 10) || 0 : 0;
    const answer = await askTexts(step > 0 ? `Fork after step ${number(step)}` : 'Fork from the start', [{ label: 'Message (empty: go on with the same one)', rows: 5, isOptional: true }], 'Fork');
    if (answer === null) return;
    const [message = ''] = answer;
    try {
      const fork = await api.fork(this.id_, { step, ...(message.trim() === '' ? {} : { message }) });
      notify(fork.state_restored
        ? 'The fork runs with the files and the state of that step; memory and shared variables stay as they are'
        : 'The fork runs with the files of that step; the earlier state is no longer recorded');
      live.refresh();
      navigate(href('run', [fork.id]));
    } catch (error) {
      notifyError(error);
    }
  }

  toggleReplay() {
    if (this.replay.isOpen) {
      this.endReplay();
      return;
    }
    this.waterfall.setFollowing(false);
    const rows = this.waterfall.rows.filter((row) => row.kind === 'step' || row.kind === 'call');
    this.replay.start(rows);
    this.waterfall.scroller.focus();
  }

  /**
   * @param {Row} row
   * @param {import('../parts/inspector.js').TabId} tab
   */
  showMoment(row, tab) {
    this.waterfall.replayKey = row.key;
    this.waterfall.select(row.key, { reveal: true });
    this.inspector.show(this.feed, row, tab);
    if (this.isNarrow()) this.inspector.element.classList.remove('open');
    this.writeAddress(row);
  }

  endReplay() {
    this.replay.stop();
    this.waterfall.replayKey = '';
    this.waterfall.list.draw();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (this.replay.isOpen && this.replay.onKey(event)) event.preventDefault();
    else if (event.defaultPrevented) return;
    else if (event.key === 'f') this.waterfall.setFollowing(!this.waterfall.isFollowing);
    else if (event.key === 'r') this.toggleReplay();
    else if (event.key >= '1' && event.key <= '7') this.inspector.selectTabNumber(Number(event.key));
    else if (event.key === 'Escape' && this.inspector.element.classList.contains('open')) this.closeSheet();
    else return;
    event.preventDefault();
  }
}

customElements.define('w-run', RunView);
