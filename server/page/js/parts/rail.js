/**
 * The navigation: a rail beside the page, on a phone a bar below it.
 *
 * @import {Route} from '../router.js'
 * @import {IconName} from './icon.js'
 */

import { live } from '../app.js';
import { fill, h } from '../dom.js';
import { visible } from '../format.js';
import { isMac } from '../keys.js';
import { href } from '../router.js';
import { setPending } from '../title.js';
import { openDialog, openHelp } from './dialogs.js';
import { icon } from './icon.js';
import { openPalette } from './palette.js';

/** @type {{view: string, label: string, icon: IconName, isSecondary?: boolean}[]} */
const ITEMS = [
  { view: 'runs', label: 'Runs', icon: 'runs' },
  { view: 'approvals', label: 'Approvals', icon: 'approve' },
  { view: 'catalog', label: 'Catalog', icon: 'catalog', isSecondary: true },
  { view: 'sandbox', label: 'Sandbox', icon: 'sandbox' },
  { view: 'sessions', label: 'Sessions', icon: 'sessions', isSecondary: true },
  { view: 'settings', label: 'Settings', icon: 'settings', isSecondary: true },
];
const CHATS = 8;
/** @type {Record<string, string>} Views that belong to an item. */
const PARENT = { run: 'runs' };

export class Rail extends HTMLElement {
  constructor() {
    super();
    this.badge = h('span', { class: 'badge attention', hidden: true });
    this.chats = h('div', { class: 'chats' });
    this.version = h('span', { class: 'version' });
    /** @type {Map<string, HTMLAnchorElement>} */
    this.items = new Map();
    this.drawn = '';
    this.life = new AbortController();
    /** @type {Route|null} */
    this.current = null;
  }

  connectedCallback() {
    this.className = 'rail';
    this.setAttribute('role', 'banner');
    const chat = this.item('chat', 'Chat', 'chat');
    const items = ITEMS.map(({ view, label, icon: name, isSecondary }) => this.item(view, label, name, isSecondary));
    this.items.get('approvals')?.append(this.badge);
    fill(this,
      h('a', { class: 'brand', href: href('chat') }, h('img', { src: 'page/icon.svg', alt: '', width: '22', height: '22' }), 'Wattle', this.version),
      h('div', { class: 'new' },
        h('a', { class: 'button', href: href('chat') }, icon('plus'), 'New chat'),
        h('button', { class: 'tiny', 'aria-label': `${isMac ? '⌘K' : 'Ctrl K'}: search all`, title: 'Search all', onclick: openPalette }, isMac ? '⌘K' : 'Ctrl K')),
      h('nav', { 'aria-label': 'Main', class: 'places' }, chat, items,
        h('button', { class: 'menu-button', onclick: () => this.openMore() }, icon('more'), 'More')),
      h('h2', { class: 'heading', id: 'chats-heading' }, 'Chats'),
      h('nav', { 'aria-labelledby': 'chats-heading' }, this.chats),
      h('div', { class: 'foot' },
        h('button', { class: 'plain icon-only', 'aria-label': 'Keys', title: 'Keys (?)', onclick: openHelp }, icon('help'))));
    live.addEventListener('change', () => this.update(), { signal: this.life.signal });
    live.addEventListener('settings', () => { this.version.textContent = live.settings?.version ?? ''; }, { signal: this.life.signal });
    this.update();
  }

  disconnectedCallback() {
    this.life.abort();
  }

  /**
   * @param {string} view
   * @param {string} label
   * @param {IconName} name
   * @param {boolean} [isSecondary]
   */
  item(view, label, name, isSecondary = false) {
    const link = h('a', { class: `item${isSecondary ? ' secondary' : ''}`, href: href(view) }, icon(name), h('span', null, label));
    this.items.set(view, link);
    return link;
  }

  /** @param {Route} route */
  select(route) {
    this.current = route;
    const view = PARENT[route.view] ?? route.view;
    for (const [name, link] of this.items) {
      if (name === view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    this.update();
  }

  update() {
    const pending = live.approvals.length;
    setPending(pending);
    this.badge.hidden = pending === 0;
    fill(this.badge, String(pending), h('span', { class: 'visually-hidden' }, ' pending'));
    const sessions = live.sessions.slice(0, CHATS);
    const active = new Map(live.runs.map((run) => [run.session_id, run.status]));
    for (const run of live.runs) if (run.status === 'running' || run.status === 'parked') active.set(run.session_id, run.status);
    const open = this.current?.view === 'chat' ? this.current.path[0] : undefined;
    const key = JSON.stringify([open, sessions.map((one) => [one.id, one.title, active.get(one.id)])]);
    if (key === this.drawn) return;
    this.drawn = key;
    fill(this.chats, sessions.map((one) => {
      const status = active.get(one.id);
      const mark = status === 'running' ? 'running' : status === 'parked' ? 'parked' : '';
      const title = visible(one.title || 'Untitled');
      return h('a', { href: href('chat', [one.id]), 'aria-current': one.id === open ? 'page' : null, title },
        h('span', { class: 'ellipsis', dir: 'auto' }, title),
        mark ? h('span', { class: `dot ${mark}`, role: 'img', 'aria-label': mark === 'running' ? 'running' : 'waiting' }) : null);
    }));
  }

  openMore() {
    const dialog = openDialog('More', [h('nav', { class: 'stack', 'aria-label': 'More' },
      ITEMS.filter((one) => one.isSecondary).map((one) => h('a', { class: 'button', href: href(one.view), onclick: () => dialog.close() }, icon(one.icon), one.label)),
      h('button', { onclick: () => { dialog.close(); openPalette(); } }, icon('search'), 'Search all'))]);
  }
}

customElements.define('w-rail', Rail);
