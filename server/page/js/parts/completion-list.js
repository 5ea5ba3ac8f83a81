/**
 * The list of completions below the caret.
 *
 * @import {Completion} from '../completion.js'
 * @import {Editor} from './editor.js'
 */

import { completionsAt } from '../completion.js';
import { fill, h } from '../dom.js';

/** Without the key that asks for it, the list opens after this many letters. */
const MIN_LETTERS = 2;

export class CompletionList {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    /** @type {Completion[]} */
    this.items = [];
    this.start = 0;
    this.selected = 0;
    this.element = h('ul', { class: 'completions', role: 'listbox', id: 'completions', 'aria-label': 'Completions', hidden: true });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {boolean} isAsked */
  update(isAsked) {
    const { field, functions, programs } = this.editor;
    const caret = field.selectionStart;
    const { start, items } = completionsAt(field.value, caret, functions, programs);
    if (items.length === 0 || (!isAsked && caret - start < MIN_LETTERS)) {
      this.close();
      return;
    }
    this.items = items;
    this.start = start;
    this.selected = 0;
    this.element.hidden = false;
    field.setAttribute('aria-controls', 'completions');
    field.setAttribute('aria-autocomplete', 'list');
    this.draw();
    this.place();
  }

  draw() {
    fill(this.element, this.items.map((item, i) => h('li', { role: 'option', id: `completion-${i}`, 'aria-selected': i === this.selected,
      onmousedown: (/** @type {Event} */ event) => { event.preventDefault(); this.accept(item); } }, h('code', null, item.label), h('span', { class: 'note ellipsis' }, item.note))));
    this.editor.field.setAttribute('aria-activedescendant', `completion-${this.selected}`);
  }

  place() {
    const caret = this.editor.marks.querySelector('.caret-mark');
    if (!caret) return;
    const box = this.editor.element.getBoundingClientRect();
    const at = caret.getBoundingClientRect();
    this.element.style.left = `${Math.max(8, Math.min(at.left - box.left, box.width - 340))}px`;
    this.element.style.top = `${at.top - box.top + 24}px`;
  }

  close() {
    if (!this.isOpen) return;
    this.element.hidden = true;
    for (const name of ['aria-activedescendant', 'aria-controls', 'aria-autocomplete']) this.editor.field.removeAttribute(name);
  }

  /** @param {Completion} item */
  accept(item) {
    const { field } = this.editor;
    field.setSelectionRange(this.start, field.selectionStart);
    this.editor.insert(item.insert);
    this.close();
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} True if the key was for the list.
   */
  onKey(event) {
    if (!this.isOpen) return false;
    const item = this.items[this.selected];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.selected = (this.selected + (event.key === 'ArrowDown' ? 1 : -1) + this.items.length) % this.items.length;
      this.draw();
    } else if ((event.key === 'Enter' || event.key === 'Tab') && item && !event.ctrlKey && !event.metaKey) this.accept(item);
    else if (event.key === 'Escape') this.close();
    else return false;
    return true;
  }
}
