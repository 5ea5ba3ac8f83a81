/**
 * Modal dialogs: a question with an action, and the list of keys.
 *
 * @import {Child} from '../dom.js'
 */

import { h, uniqueId } from '../dom.js';
import { KEYS } from '../keys.js';
import { icon } from './icon.js';

/**
 * Opens a dialog and removes it when it closes.
 *
 * @param {string} title
 * @param {Child[]} body
 * @param {Child[]} [footer]
 */
export function openDialog(title, body, footer) {
  const id = uniqueId('dialog');
  const dialog = h('dialog', { 'aria-labelledby': id },
    h('header', null, h('h2', { id }, title), h('button', { class: 'plain icon-only end', 'aria-label': 'Close', onclick: () => dialog.close() }, icon('close'))),
    h('div', { class: 'body' }, body), footer ? h('footer', null, footer) : null);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Asks before an action that cannot be undone.
 *
 * @param {string} title
 * @param {string} text
 * @param {string} action
 * @returns {Promise<boolean>}
 */
export function confirmAction(title, text, action) {
  return new Promise((resolve) => {
    let answer = false;
    const dialog = openDialog(title, [h('p', null, text)], [
      h('button', { onclick: () => dialog.close() }, 'Keep'),
      h('button', { class: 'danger', onclick: () => { answer = true; dialog.close(); } }, action),
    ]);
    dialog.addEventListener('close', () => resolve(answer));
  });
}

/**
 * Asks for texts. Resolves to null if the dialog is closed.
 *
 * @param {string} title
 * @param {{label: string, value?: string, rows?: number, pattern?: string, note?: string, isOptional?: boolean}[]} fields With `rows`, a text may have several lines.
 * @param {string} action
 * @returns {Promise<string[]|null>}
 */
export function askTexts(title, fields, action) {
  return new Promise((resolve) => {
    /** @type {string[]|null} */
    let answer = null;
    const inputs = fields.map(({ value = '', rows, pattern, isOptional = false }) => (rows ? h('textarea', { id: uniqueId('ask'), rows, value, required: !isOptional, dir: 'auto' })
      : h('input', { id: uniqueId('ask'), type: 'text', value, pattern, required: !isOptional, autocomplete: 'off', dir: 'auto' })));
    const form = h('form', { class: 'stack', id: uniqueId('form'), onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      answer = inputs.map((input) => input.value);
      dialog.close();
    } }, fields.map(({ label, note }, i) => h('div', { class: 'field' }, h('label', { for: inputs[i]?.id }, label), inputs[i], note ? h('span', { class: 'note' }, note) : null)));
    const dialog = openDialog(title, [form], [
      h('button', { onclick: () => dialog.close() }, 'Close'),
      h('button', { class: 'primary', type: 'submit', form: form.id }, action),
    ]);
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) form.requestSubmit();
    });
    inputs[0]?.focus();
    dialog.addEventListener('close', () => resolve(answer));
  });
}

export function openHelp() {
  if (document.querySelector('dialog[open]')) return;
  const dialog = openDialog('Keys', KEYS.map(({ title, keys }) => h('section', { class: 'stack' }, h('h3', null, title), h('dl', { class: 'keys' },
    keys.map(([key, meaning]) => [h('dt', null, key.split(' ').map((one) => h('kbd', null, one))), h('dd', null, meaning)])))));
  dialog.querySelector('.body')?.setAttribute('tabindex', '0');
}
