/**
 * The integrations: named addresses for other programs, each with its own system prompt.
 */

import { errorText } from '../api.js';
import { api } from '../app.js';
import { fill, h, uniqueId } from '../dom.js';
import { firstLine, visible } from '../format.js';
import { deleteButton } from './bits.js';
import { confirmAction } from './dialogs.js';
import { busy, notifyError } from './notify.js';

export function integrationsCard() {
  const list = h('div', { class: 'stack' });
  const name = h('input', { id: uniqueId('name'), type: 'text', required: true, placeholder: 'support-bot', autocomplete: 'off' });
  const prompt = h('textarea', { id: uniqueId('prompt'), rows: '2', dir: 'auto' });
  const button = h('button', { type: 'submit' }, 'Create integration');
  const load = async () => {
    try {
      const { integrations } = await api.integrations();
      fill(list, integrations.length === 0 ? h('p', { class: 'muted' }, 'There are no integrations. Create one for each program that sends messages in its own name.') : h('ul', { class: 'rows' }, integrations.map((one) => h('li', null,
        h('b', null, visible(one.name)), one.agent ? h('span', { class: 'badge' }, visible(one.agent)) : null, h('span', { class: 'muted small ellipsis', dir: 'auto' }, visible(firstLine(one.system_prompt ?? ''))),
        deleteButton(`Delete the integration ${one.name}`, async () => {
          if (!(await confirmAction('Delete the integration', `Programs that use “${visible(one.name)}” can no longer send messages.`, 'Delete'))) return;
          await api.deleteIntegration(one.name).catch(notifyError);
          await load();
        })))));
    } catch (error) {
      fill(list, h('p', { class: 'muted' }, visible(errorText(error))));
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void busy(button, async () => {
      await api.createIntegration({ name: name.value.trim(), ...(prompt.value.trim() === '' ? {} : { system_prompt: prompt.value }) });
      name.value = '';
      prompt.value = '';
      await load();
    });
  };
  void load();
  return h('section', { class: 'card', 'aria-label': 'Integrations' }, h('header', null, h('h2', null, 'Integrations')), h('div', { class: 'body stack' }, list,
    h('form', { class: 'inline-form', onsubmit: submit }, h('div', { class: 'field' }, h('label', { for: name.id }, 'Name'), name),
      h('div', { class: 'field grow' }, h('label', { for: prompt.id }, 'System prompt (optional)'), prompt), button)));
}
