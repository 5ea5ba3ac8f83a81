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
import { count, firstLine, visible } from '../format.js';
import { renderMarkdown } from '../markdown-dom.js';
import { emptyState, idLabel, loadError, notice, skeleton } from '../parts/bits.js';
import { Composer } from '../parts/composer.js';
import { icon } from '../parts/icon.js';
import { notify, notifyError } from '../parts/notify.js';
import { openMore } from '../parts/rail.js';
import { Turn } from '../parts/turn.js';
import { href, navigate } from '../router.js';
import { splitAttachments, withAttachments } from '../run-text.js';
import { sessionTitle } from '../runs-list.js';
import { View } from '../view.js';

/** Messages that need no files. */
const EXAMPLES = [
  'Which programs do you have for tables, and what does each do?',
  'On which day of the week will the next five leap days be?',
  'Write the first 50 prime numbers and their gaps to primes.csv, and tell me the largest gap.',
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
      send: (text, files, choice) => this.send(text, files, choice), cancel: () => void this.cancel(), editLast: () => this.editLast(),
    });
    this.problem = h('div', { class: 'model-problem' });
    this.isFollowing = true;
    this.id_ = '';
    /** @type {string[]} */
    this.agents = [];
    /** @type {Map<string, Turn>} */
    this.turns = new Map();
    /** @type {RunLine|null} The message that is edited: its run is forked. */
    this.editing = null;
    this.content = new AbortController();
  }

  connectedCallback() {
    super.connectedCallback();
    this.append(this.header, this.scroller, this.problem, this.composer.element);
    this.listen(live, 'change', () => this.onLive());
    this.listen(live, 'settings', () => this.drawModels());
    this.drawModels();
    void this.loadAgents();
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
    fill(this.header, h('h1', null, 'New chat'), h('div', { class: 'actions' }, chatsButton()));
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
        fill(this.column, loadError(error, () => void this.load(id)));
      }
    }
  }

  /** @param {Session} session */
  show(session) {
    this.drawHeader(session.id, sessionTitle(session, session.runs), session.files.filter((file) => !file.deleted).length);
    const runs = [...session.runs].sort((a, b) => a.created - b.created);
    fill(this.column, earlierMessages(session, runs).map(drawMessage));
    for (const line of runs) this.addTurn(line);
    this.drawAgents();
    if (runs.length === 0 && session.messages.length === 0) this.column.append(h('p', { class: 'muted' }, 'This session has no messages. Write the first one.'));
    this.onTurnChange();
    this.follow();
    this.composer.field.focus({ preventScroll: true });
  }

  /**
   * @param {string} id
   * @param {string} title
   * @param {number} files
   */
  drawHeader(id, title, files) {
    this.setTitle(title);
    fill(this.header, h('h1', { class: 'ellipsis', dir: 'auto' }, title), h('div', { class: 'facts' }, idLabel(id, 'Session id')),
      h('div', { class: 'actions' }, h('a', { class: 'button', href: href('sessions', [id]) }, icon('file'), files > 0 ? count(files, 'file') : 'Files'), chatsButton()));
  }

  /** @param {RunLine} line */
  addTurn(line) {
    if (this.turns.has(line.id)) return;
    const turn = new Turn(line, this.content.signal, {
      onEdit: (edited) => this.setEditing(edited, true), onSend: async (line, prompt) => this.showRun((await api.sendAgain(line, prompt)).id), onGrow: () => this.follow(), onLine: () => this.onTurnChange(),
    });
    this.turns.set(line.id, turn);
    this.column.append(turn.element);
  }

  drawModels() {
    if (!live.settings) return;
    const { models, model, model_problem: problem } = live.settings;
    this.composer.setModels(models, model);
    fill(this.problem, problem ? notice('attention', `Messages cannot be answered: ${problem}.`, ' Then start the server again.') : null);
  }

  async loadAgents() {
    try {
      this.agents = (await api.agents()).agents.map((one) => one.name);
    } catch { /* the server's own agent answers */ }
    this.drawAgents();
  }

  /** Selects the agent that the address names, or that of the last message. */
  drawAgents() {
    const last = [...this.turns.values()].at(-1)?.line.agent;
    this.composer.setAgents(this.agents, this.route.query.get('agent') ?? (last || live.settings?.agent || 'default'));
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
   * @param {{model: string, agent: string}} choice
   * @returns {Promise<boolean>}
   */
  async send(text, files, { model, agent }) {
    try {
      if (this.editing) {
        if (files.length > 0) throw new Error('An edited message takes no files. Stop editing to send them.');
        const message = withAttachments(text, splitAttachments(this.editing.prompt).names);
        const { id, session_id: session } = await api.fork(this.editing.id, { step: 0, message });
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
      const started = await api.startRun({
        prompt: withAttachments(text, files.map((file) => file.name)), ...(session ? { session_id: session } : {}), ...(model ? { model } : {}),
        ...(agent ? { agent } : {}), ...(Object.keys(texts).length > 0 ? { files: texts } : {}),
      });
      if (this.id_ === '') {
        this.id_ = started.session_id;
        this.composer.draft = this.id_;
        fill(this.column);
        this.drawHeader(this.id_, visible(firstLine(text, 80)), files.length);
        navigate(href('chat', [this.id_]), { replace: true });
      }
      await this.showRun(started.id);
      return true;
    } catch (error) {
      notifyError(error);
      return false;
    }
  }

  /**
   * Shows a run that was just started.
   *
   * @param {string} id
   */
  async showRun(id) {
    const line = await api.run(id);
    this.isFollowing = true;
    this.addTurn(line);
    this.onTurnChange();
    this.follow();
    live.refresh();
  }

  /** Stops the run that is active. A message that waits for it is cancelled only if there is none. */
  async cancel() {
    const turns = [...this.turns.values()].filter((turn) => !isEnded(turn.line.status));
    const active = turns.find((turn) => turn.line.status !== 'queued') ?? turns[0];
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
      this.composer.openDraft(this.id_ || 'new');
      return;
    }
    this.composer.closeDraft();
    fill(this.composer.note, 'You edit a message: sending forks the session before it. ', h('button', { class: 'link', type: 'button', onclick: () => { this.setEditing(null); this.composer.field.focus(); } }, 'Stop editing'));
    if (fillIn) this.composer.setText(splitAttachments(line.prompt).text);
  }
}

/** The way to the other chats on a phone, whose navigation does not list them. */
function chatsButton() {
  return h('button', { class: 'phone-only', onclick: openMore }, icon('sessions'), 'Chats');
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
  if (message.role === 'user') return h('article', { class: 'turn', 'aria-label': 'Earlier message' }, h('div', { class: 'ask' }, h('div', { class: 'bubble', dir: 'auto' }, visible(splitAttachments(message.content).text))));
  const answer = h('div', { class: 'answer markdown' });
  renderMarkdown(answer, message.content);
  return h('article', { class: 'turn', 'aria-label': 'Earlier answer' }, h('div', { class: 'reply' }, answer));
}

customElements.define('w-chat', ChatView);
