/**
 * What is kept for all chats of the tenant: the memory and the variables.
 *
 * @import {MemoryItem} from '../types.js'
 */

import { errorText } from '../api.js';
import { api } from '../app.js';
import { debounce, fill, h } from '../dom.js';
import { bytes, visible } from '../format.js';
import { deleteButton, notice, timeLabel } from '../parts/bits.js';
import { askTexts, confirmAction } from '../parts/dialogs.js';
import { icon } from '../parts/icon.js';
import { notifyError } from '../parts/notify.js';
import { View } from '../view.js';

/** A longer value is shown only in part, and cannot be edited here. */
const MAX_VALUE = 100_000;

class MemoryView extends View {
  constructor() {
    super();
    this.search = h('input', { type: 'search', placeholder: 'Search the memory', 'aria-label': 'Search the memory', oninput: debounce(() => void this.loadItems(), 250) });
    this.items = h('div');
    this.variables = h('div');
  }

  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Memory');
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Memory')), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Memory and variables' }, h('div', { class: 'page narrow' },
      card('Memory', 'Texts that programs in all chats write and search.', () => void this.add(), h('div', { role: 'search' }, this.search), this.items),
      card('Variables', 'Values that programs in all chats read and write.', () => void this.edit('', ''), this.variables))));
    void this.loadItems();
    void this.loadVariables();
  }

  async loadItems() {
    const words = this.search.value.trim();
    await show(this.items, async () => {
      const { items } = await api.memory(words);
      return items.length === 0 ? h('p', { class: 'muted' }, words ? 'No text matches. Try another word.' : 'Nothing is remembered yet.') : h('ul', { class: 'rows' }, items.map((item) => h('li', null,
        h('span', { class: 'grow memory-text', dir: 'auto' }, visible(item.text)), h('span', { class: 'muted small nowrap' }, timeLabel(item.created)),
        deleteButton('Forget this text', () => void this.forget(item)))));
    });
  }

  async add() {
    const answer = await askTexts('Remember a text', [{ label: 'Text', rows: 4 }], 'Remember');
    if (answer) await this.change(() => api.addMemory(answer[0] ?? ''));
  }

  /** @param {MemoryItem} item */
  async forget(item) {
    if (await confirmAction('Forget the text', `“${visible(item.text.slice(0, 200))}” is deleted for good.`, 'Forget')) await this.change(() => api.deleteMemory(item.id));
  }

  async loadVariables() {
    await show(this.variables, async () => {
      const { vars } = await api.variables();
      return vars.length === 0 ? h('p', { class: 'muted' }, 'There are no variables yet.') : h('ul', { class: 'rows' }, vars.map(({ key, size }) => h('li', null,
        h('button', { class: 'link mono', onclick: () => void this.openVariable(key, size) }, visible(key)), h('span', { class: 'muted small nowrap end' }, bytes(size)),
        deleteButton(`Delete ${visible(key)}`, () => void this.removeVariable(key)))));
    });
  }

  /**
   * @param {string} key
   * @param {number} size
   */
  async openVariable(key, size) {
    try {
      const value = await (await api.variable(key)).text();
      if (size > MAX_VALUE) throw new Error(`The value has ${bytes(size)}: too much to edit here`);
      await this.edit(key, value);
    } catch (error) {
      notifyError(error);
    }
  }

  /**
   * @param {string} key Empty for a new variable.
   * @param {string} value
   */
  async edit(key, value) {
    const answer = await askTexts(key ? visible(key) : 'New variable', [...(key ? [] : [{ label: 'Key' }]), { label: 'Value', value, rows: 8, isOptional: true }], 'Save');
    if (answer) await this.change(() => api.setVariable(key || (answer[0] ?? ''), answer.at(-1) ?? ''));
  }

  /** @param {string} key */
  async removeVariable(key) {
    if (await confirmAction('Delete the variable', `${visible(key)} is deleted for good.`, 'Delete')) await this.change(() => api.deleteVariable(key));
  }

  /** @param {() => Promise<unknown>} action */
  async change(action) {
    await action().catch(notifyError);
    await Promise.all([this.loadItems(), this.loadVariables()]);
  }
}

/**
 * Shows what a function returns, or its error.
 *
 * @param {HTMLElement} place
 * @param {() => Promise<HTMLElement>} load
 */
async function show(place, load) {
  try {
    fill(place, await load());
  } catch (error) {
    fill(place, notice('bad', errorText(error)));
  }
}

/**
 * @param {string} title
 * @param {string} about
 * @param {() => void} onAdd
 * @param {...HTMLElement} body
 */
function card(title, about, onAdd, ...body) {
  return h('section', { class: 'card', 'aria-label': title }, h('header', null, h('h2', null, title), h('button', { class: 'tiny end', 'aria-label': `Add to ${title}`, onclick: onAdd }, icon('plus'), 'Add')),
    h('div', { class: 'body stack' }, h('p', { class: 'muted' }, about), body));
}

customElements.define('w-memory', MemoryView);
