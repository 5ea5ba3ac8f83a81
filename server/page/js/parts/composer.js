/**
 * The field for a message, with attachments.
 *
 * @typedef {{name: string, size: number, text: string|null, blob: Blob}} Attachment
 */

import { fill, h } from '../dom.js';
import { bytes, visible } from '../format.js';
import { icon } from './icon.js';
import { notify } from './notify.js';

const MAX_FILE = 16 * 1024 * 1024;
const MAX_HEIGHT = 260;
const DRAFT = 'wattle.draft.';
/** @type {Map<string, Attachment[]>} The attachments that are not sent yet, by the key of their draft. */
const drafts = new Map();

/**
 * @typedef {object} ComposerActions
 * @property {(text: string, files: Attachment[], choice: {model: string, agent: string}) => Promise<boolean>} send A model or agent is empty for the server's own. Resolves to true if the message was sent.
 * @property {() => void} cancel
 * @property {() => void} editLast
 */

export class Composer {
  /** @param {ComposerActions} actions */
  constructor(actions) {
    this.actions = actions;
    /** @type {Attachment[]} */
    this.files = [];
    this.isRunning = false;
    /** The key of the draft in the field; empty if it is not kept. */
    this.draft = '';
    this.field = h('textarea', {
      rows: '1', placeholder: 'Ask for something', 'aria-label': 'Message', dir: 'auto', autocomplete: 'off',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event), oninput: () => { this.keepDraft(); this.fit(); },
      onpaste: (/** @type {ClipboardEvent} */ event) => {
        const files = [...(event.clipboardData?.files ?? [])];
        if (files.length > 0) {
          event.preventDefault();
          void this.attach(files);
        }
      },
    });
    this.chips = h('ul', { class: 'chips', 'aria-label': 'Attachments', hidden: true });
    this.input = h('input', { type: 'file', multiple: true, hidden: true, tabindex: '-1', 'aria-label': 'Attachments', onchange: () => {
      void this.attach([...(this.input.files ?? [])]);
      this.input.value = '';
    } });
    this.sendButton = h('button', { class: 'primary icon-only', type: 'submit', 'aria-label': 'Send', title: 'Send (Enter)' }, icon('send'));
    this.stopButton = h('button', { class: 'icon-only', type: 'button', hidden: true, 'aria-label': 'Stop the run', title: 'Stop the run (Esc)', onclick: () => this.actions.cancel() }, icon('stop'));
    this.note = h('p', { class: 'composer-note' });
    this.model = h('select', { 'aria-label': 'Model', title: 'Model of the next message', hidden: true });
    this.agent = h('select', { 'aria-label': 'Agent', title: 'Agent of the next message', hidden: true });
    this.element = h('form', {
      class: 'composer', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); void this.send(); },
      ondragover: (/** @type {DragEvent} */ event) => event.preventDefault(),
      ondrop: (/** @type {DragEvent} */ event) => { event.preventDefault(); void this.attach([...(event.dataTransfer?.files ?? [])]); },
    }, this.chips, h('div', { class: 'composer-row' },
      h('button', { class: 'plain icon-only', type: 'button', 'aria-label': 'Attach files', title: 'Attach files', onclick: () => this.input.click() }, icon('attach')),
      this.input, this.field, this.stopButton, this.sendButton), h('div', { class: 'composer-foot' }, this.note, this.agent, this.model));
    this.setRunning(false);
  }

  /**
   * @param {string[]} models
   * @param {string} current The server's own.
   */
  setModels(models, current) {
    this.model.hidden = models.length < 2;
    fill(this.model, h('option', { value: '' }, visible(current)), models.filter((one) => one !== current).map((one) => h('option', { value: one }, visible(one))));
  }

  /**
   * @param {string[]} agents
   * @param {string} current
   */
  setAgents(agents, current) {
    this.agent.hidden = agents.length < 2;
    fill(this.agent, agents.map((one) => h('option', { value: one }, visible(one))));
    this.agent.value = current;
  }

  /**
   * Shows the draft of a chat, and keeps what a person writes from now on as that draft.
   *
   * @param {string} key
   */
  openDraft(key) {
    this.draft = key;
    this.files = drafts.get(key) ?? [];
    this.field.value = sessionStorage.getItem(DRAFT + key) ?? '';
    this.drawChips();
    this.fit();
  }

  /** Empties the field; the draft stays as it is. */
  closeDraft() {
    this.draft = '';
    this.files = [];
    this.field.value = '';
    this.drawChips();
  }

  keepDraft() {
    if (this.draft === '') return;
    drafts.set(this.draft, this.files);
    if (this.field.value === '') sessionStorage.removeItem(DRAFT + this.draft);
    else sessionStorage.setItem(DRAFT + this.draft, this.field.value);
  }

  /** @param {boolean} isRunning */
  setRunning(isRunning) {
    this.isRunning = isRunning;
    this.stopButton.hidden = !isRunning;
    const text = isRunning ? 'A message now waits until the run ends.' : 'Enter sends, Shift Enter starts a new line.';
    if (this.note.textContent !== text) this.note.textContent = text;
  }

  /** @param {string} text */
  setText(text) {
    this.field.value = text;
    this.keepDraft();
    this.fit();
    this.field.focus();
    this.field.setSelectionRange(text.length, text.length);
  }

  fit() {
    this.field.style.height = 'auto';
    this.field.style.height = `${Math.min(MAX_HEIGHT, this.field.scrollHeight + 2)}px`;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      void this.send();
    } else if (event.key === 'ArrowUp' && this.field.value === '') {
      event.preventDefault();
      this.actions.editLast();
    } else if (event.key === 'Escape' && this.isRunning) {
      event.preventDefault();
      this.actions.cancel();
    }
  }

  async send() {
    const text = this.field.value;
    if (text.trim() === '' || this.sendButton.disabled) return;
    this.sendButton.disabled = true;
    const { draft } = this;
    const isSent = await this.actions.send(text, this.files, { model: this.model.value, agent: this.agent.value });
    this.sendButton.disabled = false;
    if (!isSent) return;
    sessionStorage.removeItem(DRAFT + draft);
    drafts.delete(draft);
    // A person may have opened another chat meanwhile.
    if (this.field.value !== text) return;
    this.field.value = '';
    this.files = [];
    this.keepDraft();
    this.drawChips();
    this.fit();
  }

  /** @param {File[]} files */
  async attach(files) {
    for (const file of files) {
      if (file.size > MAX_FILE) {
        notify(`${file.name} is larger than ${bytes(MAX_FILE)}`, { isError: true });
        continue;
      }
      const buffer = await file.arrayBuffer();
      let text = null;
      try {
        text = new TextDecoder('utf-8', { fatal: true }).decode(buffer);
      } catch { /* a binary file: sent as bytes */ }
      this.files = [...this.files.filter((one) => one.name !== file.name), { name: file.name, size: file.size, text, blob: new Blob([buffer]) }];
    }
    this.drawChips();
    this.field.focus();
  }

  drawChips() {
    this.keepDraft();
    this.chips.hidden = this.files.length === 0;
    fill(this.chips, this.files.map((file) => h('li', null, icon('file'), h('span', { class: 'ellipsis' }, visible(file.name)), h('span', { class: 'muted' }, bytes(file.size)),
      h('button', { class: 'plain tiny icon-only', type: 'button', 'aria-label': `Remove ${file.name}`, onclick: () => {
        this.files = this.files.filter((one) => one !== file);
        this.drawChips();
      } }, icon('close')))));
  }
}
