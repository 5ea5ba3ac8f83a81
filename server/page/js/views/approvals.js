/**
 * The pending approvals: a card for each call that waits for a person.
 *
 * @import {Card} from '../parts/approval-card.js'
 * @import {Run} from '../types.js'
 */

import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { count, visible } from '../format.js';
import { isTyping } from '../keys.js';
import { approvalCard } from '../parts/approval-card.js';
import { command, emptyState, idLabel, notice, skeleton } from '../parts/bits.js';
import { icon } from '../parts/icon.js';
import { act, announce, notify } from '../parts/notify.js';
import { href } from '../router.js';
import { applyEvent, createRun } from '../run-model.js';
import { View } from '../view.js';

class ApprovalsView extends View {
  constructor() {
    super();
    this.list = h('div', { class: 'stack cards' });
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Map<string, HTMLElement>} Runs that an operator must release. */
    this.releases = new Map();
    /** @type {Set<string>} Calls that were answered here, until the server's list says so. */
    this.answered = new Set();
    this.selected = '';
    this.content = h('div', { class: 'page narrow' }, skeleton(5));
    this.summary = h('div', { class: 'facts', role: 'status' });
  }

  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Approvals');
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Approvals'), this.summary), h('div', { class: 'scroll' }, this.content));
    this.listen(live, 'change', () => this.update());
    this.listen(document, 'keydown', (event) => this.onKey(event));
    this.update();
    live.refresh();
  }

  update() {
    if (!live.isLoaded) return;
    /** @type {Set<string>} */
    const keep = new Set();
    for (const run of live.approvals) {
      for (const waiting of run.waiting) {
        const key = `${run.id} ${waiting.call}`;
        if (this.answered.has(key)) continue;
        keep.add(key);
        if (!this.cards.has(key)) this.addCard(key, run, waiting);
      }
      if (run.waiting.length === 0 && run.reason && !this.answered.has(run.id)) {
        keep.add(run.id);
        if (!this.releases.has(run.id)) this.addRelease(run);
      }
    }
    for (const [key, card] of this.cards) if (!keep.has(key)) this.removeCard(key, card.element);
    for (const [key, element] of this.releases) if (!keep.has(key)) this.removeCard(key, element);
    const total = this.cards.size + this.releases.size;
    this.summary.textContent = total > 0 ? `${count(total, 'run')} waiting` : '';
    if (total === 0 && !this.content.querySelector('.empty')) {
      fill(this.content, emptyState('approve', 'Nothing waits for you', h('p', null, 'When a program asks for something that the policy leaves to a person, it appears here. To be asked, for example, before each request to the web, add this line to wattle.toml, and start the server again:'), command('ask = ["http"]')));
    } else if (total > 0 && this.list.parentElement !== this.content) {
      fill(this.content, this.list);
    }
    if (!this.cards.has(this.selected)) this.select([...this.cards.keys()][0] ?? '', false);
  }

  /**
   * @param {string} key
   * @param {Run} run
   * @param {import('../types.js').Waiting} waiting
   */
  addCard(key, run, waiting) {
    const card = approvalCard(run, waiting, () => {
      this.answered.add(key);
      this.update();
    });
    this.cards.set(key, card);
    this.list.append(card.element);
    card.element.addEventListener('focusin', () => this.select(key, false));
    announce(`Approval needed: ${waiting.question}`);
    void this.loadProgram(run, card);
  }

  /**
   * @param {Run} run
   * @param {Card} card
   */
  async loadProgram(run, card) {
    try {
      const state = createRun(run.id, run.created);
      for (let after = 0; ;) {
        const page = await api.events(run.id, after, this.signal);
        for (const event of page.events) applyEvent(state, event);
        const last = page.events.at(-1)?.seq ?? 0;
        if (last <= after) break;
        after = last;
      }
      card.setState(state);
    } catch { /* the card works without the program */ }
  }

  /** @param {Run} run */
  addRelease(run) {
    const element = h('article', { class: 'card approval', 'aria-label': 'Run that an operator must release' },
      h('header', null, icon('warning'), h('span', null, 'A run is parked'), h('span', { class: 'end' }, idLabel(run.id, 'Run id'))),
      h('div', { class: 'body stack' }, notice('attention', run.reason ?? ''), h('p', { class: 'muted small ellipsis', dir: 'auto' }, 'For: ', visible(run.prompt)),
        h('div', { class: 'row wrap' }, h('button', { class: 'primary', onclick: act(async () => {
          await api.release(run.id);
          notify('The run was released');
          this.answered.add(run.id);
          live.refresh();
          this.update();
        }) }, 'Release the run'), h('a', { href: href('run', [run.id]) }, 'Open the run'))));
    this.releases.set(run.id, element);
    this.list.append(element);
  }

  /**
   * @param {string} key
   * @param {HTMLElement} element
   */
  removeCard(key, element) {
    const hadFocus = element.contains(document.activeElement);
    element.remove();
    this.cards.delete(key);
    this.releases.delete(key);
    if (hadFocus) this.cards.values().next().value?.element.focus();
  }

  /**
   * @param {string} key
   * @param {boolean} focus
   */
  select(key, focus) {
    this.selected = key;
    for (const [name, card] of this.cards) card.element.classList.toggle('selected', name === key);
    if (focus) this.cards.get(key)?.element.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented || document.querySelector('dialog[open]')) return;
    const card = this.cards.get(this.selected);
    const keys = [...this.cards.keys()];
    const index = keys.indexOf(this.selected);
    if (event.key === 'y' && card) card.answer(true, 'once');
    else if (event.key === 's' && card) card.answer(true, 'session');
    else if (event.key === 'n' && card) card.deny();
    else if (event.key === 'ArrowDown' && index >= 0) this.select(keys[Math.min(keys.length - 1, index + 1)] ?? '', true);
    else if (event.key === 'ArrowUp' && index >= 0) this.select(keys[Math.max(0, index - 1)] ?? '', true);
    else return;
    event.preventDefault();
  }
}

customElements.define('w-approvals', ApprovalsView);
