/**
 * The navigation: a rail beside the page, on a phone a bar below it.
 *
 * @import {Route} from '../router.js'
 * @import {SessionLine} from '../types.js'
 * @import {Place} from '../places.js'
 */

import { live } from '../app.js';
import { fill, h } from '../dom.js';
import { isMac } from '../keys.js';
import { PLACES } from '../places.js';
import { href } from '../router.js';
import { sessionTitle } from '../runs-list.js';
import { setPending } from '../title.js';
import { openDialog, openHelp } from './dialogs.js';
import { icon } from './icon.js';
import { openPalette } from './palette.js';

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
    const items = PLACES.map((place) => this.item(place));
    this.items.get('approvals')?.append(this.badge);
    fill(this,
      h('a', { class: 'brand', href: href('chat') }, h('img', { src: 'page/icon.svg', alt: '', width: '22', height: '22' }), 'Wattle', this.version),
      h('div', { class: 'new' },
        h('a', { class: 'button', href: href('chat') }, icon('plus'), 'New chat'),
        h('button', { class: 'tiny', 'aria-label': `${isMac ? '⌘K' : 'Ctrl K'}: search all`, title: 'Search all', onclick: openPalette }, isMac ? '⌘K' : 'Ctrl K')),
      h('nav', { 'aria-label': 'Main', class: 'places' }, items,
        h('button', { class: 'menu-button', onclick: openMore }, icon('more'), 'More')),
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

  /** @param {Place} place */
  item({ view, label, icon: name, isSecondary }) {
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
    const open = this.current?.view === 'chat' ? this.current.path[0] : undefined;
    const key = JSON.stringify([open, sessions.map((one) => [one.id, sessionTitle(one, live.runs), statusOf(one.id)])]);
    if (key === this.drawn) return;
    this.drawn = key;
    fill(this.chats, chatLinks(sessions, open));
  }
}

/**
 * Returns the status of a session's run that is active.
 *
 * @param {string} session
 */
function statusOf(session) {
  return live.runs.find((run) => run.session_id === session && (run.status === 'running' || run.status === 'parked'))?.status;
}

/**
 * @param {SessionLine[]} sessions
 * @param {string|undefined} open The session that is shown.
 */
function chatLinks(sessions, open) {
  return sessions.map((one) => {
    const status = statusOf(one.id);
    const title = sessionTitle(one, live.runs);
    return h('a', { href: href('chat', [one.id]), 'aria-current': one.id === open ? 'page' : null, title },
      h('span', { class: 'ellipsis', dir: 'auto' }, title),
      status ? h('span', { class: `dot ${status}`, role: 'img', 'aria-label': status === 'running' ? 'running' : 'waiting' }) : null);
  });
}

/** Opens the menu of a phone: the chats, and the views that its bar has no room for. */
export function openMore() {
  const dialog = openDialog('More', [h('nav', { class: 'stack', 'aria-label': 'More' },
    h('a', { class: 'button', href: href('chat') }, icon('plus'), 'New chat'),
    h('div', { class: 'chats' }, chatLinks(live.sessions.slice(0, CHATS), undefined)),
    PLACES.filter((one) => one.isSecondary).map((one) => h('a', { class: 'button', href: href(one.view) }, icon(one.icon), one.label)),
    h('button', { onclick: () => { dialog.close(); openPalette(); } }, icon('search'), 'Search all'))]);
  // Also closes if the link leads to the view that is open.
  dialog.addEventListener('click', (event) => { if (/** @type {Element} */ (event.target).closest('a')) dialog.close(); });
}

customElements.define('w-rail', Rail);
