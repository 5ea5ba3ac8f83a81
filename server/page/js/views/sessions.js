/**
 * The sessions, and the files of one.
 *
 * @import {Route} from '../router.js'
 * @import {SessionLine} from '../types.js'
 */

import { errorText, isAbort } from '../api.js';
import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { bytes, count, number } from '../format.js';
import { command, deleteButton, download, emptyState, idLabel, notice, skeleton, timeLabel } from '../parts/bits.js';
import { confirmAction } from '../parts/dialogs.js';
import { icon } from '../parts/icon.js';
import { act, notify } from '../parts/notify.js';
import { SessionFiles } from '../parts/session-files.js';
import { href, navigate } from '../router.js';
import { sessionTitle } from '../runs-list.js';
import { View } from '../view.js';

class SessionsView extends View {
  constructor() {
    super();
    this.id_ = '';
    this.header = h('header', { class: 'bar' });
    this.content = h('div', { class: 'page' });
    this.search = h('input', { type: 'search', placeholder: 'Search sessions', 'aria-label': 'Search sessions', oninput: () => this.drawList() });
    this.rows = h('tbody');
    this.drawn = '';
  }

  connectedCallback() {
    super.connectedCallback();
    this.append(this.header, h('div', { class: 'scroll' }, this.content));
    this.listen(live, 'change', () => { if (this.id_ === '') this.drawList(); });
  }

  /** @param {Route} route */
  open(route) {
    this.id_ = route.path[0] ?? '';
    this.drawn = '';
    if (this.id_ === '') this.showList();
    else void this.showSession(this.id_);
  }

  showList() {
    this.setTitle('Sessions');
    fill(this.header, h('h1', null, 'Sessions'));
    fill(this.content, skeleton());
    this.drawList();
  }

  drawList() {
    if (!live.isLoaded) return;
    if (live.sessions.length === 0) {
      fill(this.content, emptyState('sessions', 'No sessions yet', h('p', null, 'A session keeps the messages and files of a chat. Start one here, or in the terminal:'), command('wattle'), h('a', { class: 'button', href: href('chat') }, 'Start a chat')));
      return;
    }
    const words = this.search.value.toLowerCase();
    const shown = live.sessions.filter((one) => `${sessionTitle(one, live.runs)} ${one.id}`.toLowerCase().includes(words));
    const key = JSON.stringify(shown.map((one) => [one.id, sessionTitle(one, live.runs), one.used, one.messages, live.runs.some((run) => run.session_id === one.id && run.status === 'running')]));
    if (key === this.drawn) return;
    this.drawn = key;
    if (!this.content.contains(this.rows)) {
      fill(this.content, h('div', { role: 'search' }, this.search), h('div', { class: 'table-scroll' }, h('table', { class: 'sessions' },
        h('thead', null, h('tr', null, ['Title', 'Messages', 'Size', 'Last used', 'Actions'].map((text, i) => h('th', { scope: 'col', class: i === 1 || i === 2 ? 'align-end' : null }, i === 4 ? h('span', { class: 'visually-hidden' }, text) : text)))), this.rows)));
    }
    fill(this.rows, shown.length === 0 ? h('tr', null, h('td', { colspan: '5', class: 'muted' }, 'No session matches. Try another word.')) : shown.map((one) => this.row(one)));
  }

  /** @param {SessionLine} session */
  row(session) {
    const title = sessionTitle(session, live.runs);
    return h('tr', null,
      h('td', { class: 'message' }, h('a', { href: href('chat', [session.id]), class: 'ellipsis', dir: 'auto' }, title), live.runs.some((run) => run.session_id === session.id && run.status === 'running') ? h('span', { class: 'status running' }, 'running') : null),
      h('td', { class: 'align-end' }, number(session.messages)), h('td', { class: 'align-end nowrap' }, bytes(session.bytes)), h('td', { class: 'nowrap' }, timeLabel(session.used)),
      h('td', { class: 'align-end nowrap' }, h('a', { class: 'button tiny', href: href('sessions', [session.id]), 'aria-label': `Files of ${title}` }, icon('file'), h('span', { class: 'wide' }, 'Files')), ' ',
        deleteButton(`Delete ${title}`, () => void this.removeSession(session.id, title))));
  }

  /**
   * @param {string} id
   * @param {string} title
   */
  async removeSession(id, title) {
    if (!(await confirmAction('Delete the session', `“${title}” and its files are deleted for good.`, 'Delete'))) return;
    try {
      await api.deleteSession(id);
      live.sessions = live.sessions.filter((one) => one.id !== id);
      notify('The session was deleted');
      live.refresh();
      if (this.id_ === id) navigate(href('sessions'));
      else this.drawList();
    } catch (error) {
      notify(errorText(error), { isError: true });
    }
  }

  /** @param {string} id */
  async showSession(id) {
    this.setTitle('Session');
    fill(this.header, h('h1', null, 'Session'));
    fill(this.content, skeleton());
    try {
      const session = await api.session(id, this.signal);
      if (this.id_ !== id) return;
      const title = sessionTitle(session, session.runs);
      this.setTitle(title);
      fill(this.header, h('h1', { class: 'ellipsis', dir: 'auto' }, title), h('div', { class: 'facts' }, idLabel(id, 'Session id'), h('span', null, count(session.messages.length, 'message')), h('span', null, count(session.runs.length, 'run'))),
        h('div', { class: 'actions' }, h('a', { class: 'button', href: href('chat', [id]) }, icon('chat'), 'Open chat')));
      fill(this.content, new SessionFiles(id, session.files).element, h('section', { class: 'card', 'aria-labelledby': 'session-actions' }, h('header', null, h('h2', { id: 'session-actions' }, 'Session')), h('div', { class: 'body row wrap' },
        h('button', { onclick: act(async () => { const fork = await api.forkSession(id); notify('The session was forked'); live.refresh(); navigate(href('chat', [fork.id])); }) }, icon('fork'), 'Fork'),
        h('button', { onclick: act(async () => download(await api.exportSession(id), `session-${id}.json`)) }, icon('download'), 'Export'),
        h('button', { class: 'danger', onclick: () => void this.removeSession(id, title) }, icon('trash'), 'Delete'))));
    } catch (error) {
      if (isAbort(error) || this.id_ !== id) return;
      fill(this.content, notice('bad', errorText(error)), h('a', { href: href('sessions') }, 'Show all sessions'));
    }
  }
}

customElements.define('w-sessions', SessionsView);
