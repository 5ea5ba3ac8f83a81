/**
 * The inspector: what is known about one step, call or host call, in tabs.
 *
 * @import {Row} from '../run-rows.js'
 * @import {RunFeed} from '../run-feed.js'
 */

import { fill, h } from '../dom.js';
import { visible } from '../format.js';
import { callTitle } from '../run-text.js';
import { emptyState } from './bits.js';
import { icon } from './icon.js';
import { drawAuthority, drawCalls, drawRaw, drawResult, drawThought } from './inspector-tabs.js';
import { drawProgram } from './inspector-program.js';
import { drawRequests } from './inspector-requests.js';
import { createTabs } from './tabs.js';

/** @typedef {'thought'|'request'|'program'|'authority'|'calls'|'result'|'raw'} TabId */

/** @type {{id: TabId, label: string}[]} */
const TABS = [
  { id: 'thought', label: 'Thought' }, { id: 'request', label: 'Request' }, { id: 'program', label: 'Program' }, { id: 'authority', label: 'Authority' },
  { id: 'calls', label: 'Calls' }, { id: 'result', label: 'Result' }, { id: 'raw', label: 'Raw' },
];

export class Inspector {
  /** @param {{onClose: () => void}} actions */
  constructor(actions) {
    /** @type {TabId} */
    this.tab = 'program';
    /** @type {Row|null} */
    this.row = null;
    /** @type {RunFeed|null} */
    this.feed = null;
    this.drawn = '';
    this.title = h('h2', { class: 'ellipsis' });
    this.tabs = createTabs('Details of the step', (id) => this.selectTab(/** @type {TabId} */ (id)));
    this.head = h('header', null, this.title, h('button', { class: 'plain icon-only end close', 'aria-label': 'Close the details', onclick: actions.onClose }, icon('close')));
    this.body = h('div', { class: 'inspector-body' }, this.tabs.list, this.tabs.panel);
    this.empty = emptyState('runs', 'Nothing is selected', h('p', null, 'Select a row to see the thought, the program, what it may touch, its calls and its result.'));
    this.element = h('aside', { class: 'inspector', 'aria-label': 'Inspector' }, this.head, this.body, this.empty);
    this.show(null, null);
  }

  /** @param {TabId} tab */
  selectTab(tab) {
    this.tab = tab;
    this.draw();
  }

  /** @param {number} number Counted from 1. */
  selectTabNumber(number) {
    const tab = TABS[number - 1];
    if (tab) this.selectTab(tab.id);
  }

  /**
   * @param {RunFeed|null} feed
   * @param {Row|null} row
   * @param {TabId} [tab]
   */
  show(feed, row, tab) {
    this.feed = feed;
    this.row = row;
    if (tab) this.tab = tab;
    this.draw();
  }

  draw() {
    const { feed, row } = this;
    this.empty.hidden = row !== null;
    this.head.hidden = row === null;
    this.body.hidden = row === null;
    if (!feed || !row) {
      this.drawn = '';
      return;
    }
    const { step, call } = row;
    const hosts = feed.hostCalls.get(`${step.number}.${call?.number ?? step.calls[0]?.number ?? 1}`) ?? [];
    const key = JSON.stringify([row.key, this.tab, step.events.length, step.draft.length, step.thinking.length, step.thinkEnd, step.error, hosts.length, feed.line.status, feed.state.answer?.length, call?.question]);
    if (key === this.drawn) return;
    this.drawn = key;
    const name = row.note ? (row.note.artifact ? 'artifact' : 'note') : row.host ? row.host.function : call ? (call.source === 'wat' ? 'program' : call.label) : step.isAnswer ? 'answer' : 'think';
    fill(this.title, `Step ${step.number} · ${visible(name)}`);
    this.title.title = call ? callTitle(call) : '';
    this.tabs.update(TABS.map((tab) => (tab.id === 'calls' ? { ...tab, count: hosts.length } : tab)), this.tab);
    const panel = this.tabs.panel;
    const scroll = panel.scrollTop;
    switch (this.tab) {
      case 'thought': drawThought(panel, feed, row); break;
      case 'request': drawRequests(panel, feed, row); break;
      case 'program': drawProgram(panel, feed, row); break;
      case 'authority': drawAuthority(panel, feed, row); break;
      case 'calls': drawCalls(panel, feed, row, hosts); break;
      case 'result': drawResult(panel, feed, row); break;
      default: drawRaw(panel, feed, row);
    }
    panel.scrollTop = scroll;
  }
}

/**
 * Returns the tab that shows the most about a row.
 *
 * @param {Row} row
 * @returns {TabId}
 */
export function bestTab(row) {
  if (row.note) return row.note.artifact ? 'result' : 'thought';
  if (row.host) return 'calls';
  if (row.call) return row.call.source === 'wat' ? 'program' : 'result';
  return row.step.isAnswer ? 'result' : 'thought';
}
