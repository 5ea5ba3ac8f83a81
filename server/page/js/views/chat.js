/**
 * The chat: the messages of a session with their runs, and the field for the next one.
 *
 * @import {Route} from '../router.js'
 * @import {RunLine, Session} from '../types.js'
 * @import {Attachment} from '../parts/composer.js'
 */

import { ApiError, isAbort } from '../api.js';
import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { isEnded } from '../events.js';
import { count, visible } from '../format.js';
import { renderMarkdown } from '../markdown-dom.js';
import { emptyState, idLabel, notice, skeleton } from '../parts/bits.js';
import { Composer } from '../parts/composer.js';
import { icon } from '../parts/icon.js';
import { notify, notifyError } from '../parts/notify.js';
import { Turn } from '../parts/turn.js';
import { href, navigate } from '../router.js';
import { View } from '../view.js';

const EXAMPLES = [
  'Which files are in the folder, and what are they about?',
  'Which region sold most in sales.csv?',
  'Check the links in notes.md and list the dead ones.',
];
/** The distance from the bottom, in pixels, within which the chat follows the answer. */
const FOLLOW = 80;

class ChatView extends View {
  constructor() {
    super();
    this.header = h('header', { class: 'bar' });
    this.column = h('div', { class: 'chat-column' });
    this.scroller = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Messages', onscroll: () => {
      const { scrollTop, scrollHeight, clientHeight } = this.scroller;
      this.isFollowing = scrollHeight - scrollTop - clientHeight < FOLLOW;
    } }, this.column);
    this.composer = new Composer({
      send: (text, files, model) => this.send(text, files, model), cancel: () => void this.cancel(), editLast: () => this.editLast(),
    });
    this.isFollowing = true;
    this.id_ = '';
    /** @type {Map<string, Turn>} */
    this.turns = new Map();
    /** @type {RunLine|null} The message that is edited: its run is forked. */
    this.editing = null;
    this.content = new AbortController();
  }

  connectedCallback() {
    super.connectedCallback();
    this.append(this.header, this.scroller, this.composer.element);
    this.listen(live, 'change', () => this.onLive());
    this.listen(live, 'settings', () => this.drawModels());
    this.drawModels();
    this.signal.addEventListener('abort', () => this.content.abort());
    this.composer.field.focus({ preventScroll: true });
  }

  /** @param {Route} route */
  open(route) {
    const id = route.path[0] ?? '';
    if (id !== '' && id === this.id_) return;
    this.id_ = id;
    this.content.abort();
    this.content = new AbortController();
    this.turns.clear();
    this.setEditing(null);
    this.isFollowing = true;
    this.composer.setRunning(false);
    if (id === '') this.showNew();
    else void this.load(id);
  }

  showNew() {
    this.setTitle('New chat');
    fill(this.header, h('h1', null, 'New chat'));
    fill(this.column, h('div', { class: 'empty welcome' }, icon('chat'), h('h2', null, 'What should it do?'),
      h('p', null, 'The model answers each step with a small program. You see each one, what it touches, and what it returned.'),
      h('ul', { class: 'examples' }, EXAMPLES.map((text) => h('li', null, h('button', { onclick: () => this.composer.setText(text) }, text))))));
    this.composer.field.focus({ preventScroll: true });
  }

  /** @param {string} id */
  async load(id) {
    this.setTitle('Chat');
    fill(this.header, h('h1', null, 'Chat'));
    fill(this.column, skeleton());
    try {
      const session = await api.session(id, this.content.signal);
      if (this.id_ === id) this.show(session);
    } catch (error) {
      if (isAbort(error) || this.id_ !== id) return;
      if (error instanceof ApiError && error.status === 404) {
        fill(this.column, emptyState('chat', 'This chat does not exist', h('p', null, 'It was deleted, or it belongs to another tenant.'), h('a', { class: 'button', href: href('chat') }, 'Start a new chat')));
      } else {
        fill(this.column, notice('bad', error instanceof Error ? error.message : String(error)), h('button', { onclick: () => void this.load(id) }, 'Load again'));
      }
    }
  }

  /** @param {Session} session */
  show(session) {
    const title = visible(session.title || 'Untitled');
    this.setTitle(title);
    const files = session.files.filter((file) => !file.deleted).length;
    fill(this.header, h('h1', { class: 'ellipsis', dir: 'auto' }, title), h('div', { class: 'facts' }, idLabel(session.id, 'Session id')),
      h('div', { class: 'actions' }, h('a', { class: 'button', href: href('sessions', [session.id]) }, icon('file'), count(files, 'file'))));
    const runs = [...session.runs].sort((a, b) => a.created - b.created);
    fill(this.column, earlierMessages(session, runs).map(drawMessage));
    for (const line of runs) this.addTurn(line);
    if (runs.length === 0 && session.messages.length === 0) this.column.append(h('p', { class: 'muted' }, 'This session has no messages. Write the first one.'));
    this.onTurnChange();
    this.follow();
    this.composer.field.focus({ preventScroll: true });
  }

  /** @param {RunLine} line */
  addTurn(line) {
    if (this.turns.has(line.id)) return;
    const turn = new Turn(line, this.content.signal, {
      onEdit: (edited) => this.setEditing(edited, true), onGrow: () => this.follow(), onLine: () => this.onTurnChange(),
    });
    this.turns.set(line.id, turn);
    this.column.append(turn.element);
  }

  drawModels() {
    if (live.settings) this.composer.setModels(live.settings.models, live.settings.model);
  }

  onLive() {
    if (this.id_ === '') return;
    for (const line of live.runs.filter((run) => run.session_id === this.id_).reverse()) {
      const turn = this.turns.get(line.id);
      if (turn) turn.setLine(line);
      else if (this.turns.size > 0) this.addTurn(line);
    }
    this.onTurnChange();
  }

  onTurnChange() {
    this.composer.setRunning([...this.turns.values()].some((turn) => !isEnded(turn.line.status)));
  }

  /** Keeps the end of the chat in view, unless a person scrolled up. */
  follow() {
    if (!this.isFollowing) return;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /**
   * @param {string} text
   * @param {Attachment[]} files
   * @param {string} model
   * @returns {Promise<boolean>}
   */
  async send(text, files, model) {
    try {
      if (this.editing) {
        const { id, session_id: session } = await api.fork(this.editing.id, { step: 0, message: text });
        notify('The message was sent in a fork of the session');
        live.refresh();
        navigate(href('chat', [session || id]));
        return true;
      }
      const binary = files.filter((one) => one.text === null);
      // The server names a new session, unless files must be there before its first message.
      const session = this.id_ || (binary.length > 0 ? newSessionId() : '');
      for (const file of binary) await api.putFile(session, file.name, file.blob);
      const texts = Object.fromEntries(files.flatMap((file) => (file.text === null ? [] : [[file.name, file.text]])));
      const started = await api.startRun({ prompt: text, ...(session ? { session_id: session } : {}), ...(model ? { model } : {}), ...(Object.keys(texts).length > 0 ? { files: texts } : {}) });
      const line = await api.run(started.id);
      if (this.id_ === '') {
        this.id_ = started.session_id;
        fill(this.column);
        fill(this.header, h('h1', { class: 'ellipsis' }, visible(text.slice(0, 80))), h('div', { class: 'facts' }, idLabel(started.session_id, 'Session id')),
          h('div', { class: 'actions' }, h('a', { class: 'button', href: href('sessions', [started.session_id]) }, icon('file'), 'Files')));
        this.setTitle(visible(text.slice(0, 60)));
        navigate(href('chat', [started.session_id]), { replace: true });
      }
      this.isFollowing = true;
      this.addTurn(line);
      this.onTurnChange();
      this.follow();
      live.refresh();
      return true;
    } catch (error) {
      notifyError(error);
      return false;
    }
  }

  async cancel() {
    const active = [...this.turns.values()].filter((turn) => !isEnded(turn.line.status)).at(-1);
    if (!active) return;
    try {
      await api.cancel(active.line.id);
      live.refresh();
    } catch (error) {
      notifyError(error);
    }
  }

  editLast() {
    const last = [...this.turns.values()].at(-1);
    if (last) this.setEditing(last.line, true);
  }

  /**
   * @param {RunLine|null} line
   * @param {boolean} [fillIn]
   */
  setEditing(line, fillIn = false) {
    this.editing = line;
    this.composer.element.classList.toggle('editing', line !== null);
    if (!line) {
      this.composer.setRunning(this.composer.isRunning);
      return;
    }
    fill(this.composer.note, 'You edit a message: sending forks the session before it. ', h('button', { class: 'link', type: 'button', onclick: () => { this.setEditing(null); this.composer.setText(''); } }, 'Stop editing'));
    if (fillIn) this.composer.setText(line.prompt);
  }
}

/** Returns a session id that no other browser makes. */
function newSessionId() {
  const random = crypto.getRandomValues(new Uint8Array(10));
  return `web-${[...random].map((byte) => byte.toString(36).padStart(2, '0')).join('')}`;
}

/**
 * Returns the messages that no run shows: those before the first run.
 *
 * @param {Session} session
 * @param {RunLine[]} runs
 */
function earlierMessages(session, runs) {
  const first = runs[0];
  if (!first) return session.messages;
  const at = session.messages.findIndex((message) => message.role === 'user' && message.content === first.prompt);
  return session.messages.slice(0, Math.max(0, at));
}

/** @param {{role: string, content: string}} message */
function drawMessage(message) {
  if (message.role === 'user') return h('article', { class: 'turn', 'aria-label': 'Earlier message' }, h('div', { class: 'ask' }, h('div', { class: 'bubble', dir: 'auto' }, visible(message.content))));
  const answer = h('div', { class: 'answer markdown' });
  renderMarkdown(answer, message.content);
  return h('article', { class: 'turn', 'aria-label': 'Earlier answer' }, h('div', { class: 'reply' }, answer));
}

customElements.define('w-chat', ChatView);
