/**
 * The tokens of the server: list, create, delete. It needs the scope `admin`.
 *
 * @import {Settings} from '../types.js'
 */

import { errorText } from '../api.js';
import { api } from '../app.js';
import { fill, h, uniqueId } from '../dom.js';
import { visible } from '../format.js';
import { command, deleteButton, notice } from './bits.js';
import { confirmAction } from './dialogs.js';
import { busy, notifyError } from './notify.js';

const SCOPES = ['read', 'run', 'admin'];

/** @param {Settings} settings */
export function tokensCard(settings) {
  const list = h('div', { class: 'stack' });
  const created = h('div', { 'aria-live': 'polite' });
  const name = h('input', { id: uniqueId('token-name'), type: 'text', required: true, placeholder: 'ci', autocomplete: 'off' });
  const scopes = [...new Set([...SCOPES, ...settings.scopes])].map((scope) => h('input', { type: settings.hasOneScope ? 'radio' : 'checkbox', name: 'token-scope', value: scope, checked: scope === 'read' }));
  const chosen = () => scopes.filter((one) => one.checked).map((one) => one.value);
  const button = h('button', { type: 'submit' }, 'Create token');
  const load = async () => {
    try {
      const { tokens } = await api.tokens();
      fill(list, tokens.length === 0 ? h('p', { class: 'muted' }, 'There are no other tokens. Create one for each program that uses the API.') : h('ul', { class: 'rows' }, tokens.map((token) => h('li', null,
        h('b', null, visible(token.name)), token.scopes.map((scope) => h('span', { class: 'badge' }, visible(scope))), token.tenant ? h('span', { class: 'muted small' }, visible(token.tenant)) : null,
        deleteButton(`Delete the token ${token.name}`, async () => {
          if (!(await confirmAction('Delete the token', `Programs that use “${visible(token.name)}” lose access at once.`, 'Delete'))) return;
          await api.deleteToken(token.name).catch(notifyError);
          await load();
        })))));
    } catch (error) {
      fill(list, h('p', { class: 'muted' }, visible(errorText(error))));
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void busy(button, async () => {
      const token = await api.createToken({ name: name.value.trim(), ...(settings.hasOneScope ? { scope: chosen().at(-1) ?? 'read' } : { scopes: chosen() }) });
      fill(created, notice('good', h('p', null, 'Copy the token now: it is shown only once.'), command(token.token)));
      name.value = '';
      await load();
    });
  };
  void load();
  return h('section', { class: 'card', 'aria-label': 'Tokens' }, h('header', null, h('h2', null, 'Tokens')), h('div', { class: 'body stack' }, list, created,
    h('form', { class: 'inline-form', onsubmit: submit }, h('div', { class: 'field' }, h('label', { for: name.id }, 'Name'), name),
      h('fieldset', null, h('legend', null, settings.hasOneScope ? 'Scope' : 'Scopes'), scopes.map((one) => h('label', { class: 'check-field' }, one, one.value))), button)));
}
