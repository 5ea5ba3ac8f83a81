/**
 * The agents that a message can name.
 *
 * @import {Agent} from '../types.js'
 */

import { api } from '../app.js';
import { fill, h } from '../dom.js';
import { visible } from '../format.js';
import { command, emptyState, loadError, skeleton } from '../parts/bits.js';
import { icon } from '../parts/icon.js';
import { href } from '../router.js';
import { View } from '../view.js';

class AgentsView extends View {
  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Agents');
    this.content = h('div', { class: 'page narrow' }, skeleton());
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Agents')), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Agents' }, this.content));
    void this.load(this.content);
  }

  /** @param {HTMLElement} content */
  async load(content) {
    try {
      const { agents } = await api.agents();
      fill(content, agents.length === 0 ? emptyState('agents', 'No agents are declared', h('p', null, 'The server answers with its own agent. A file declares another one:'), command('wattle agents new NAME')) : agents.map(card));
    } catch (error) {
      fill(content, loadError(error, () => void this.load(content)));
    }
  }
}

/** @param {Agent} agent */
function card({ name, title, description, version, delegates }) {
  return h('section', { class: 'card', 'aria-label': visible(name) },
    h('header', null, h('h2', null, visible(title || name)), title ? h('code', { class: 'muted' }, visible(name)) : null, version ? h('span', { class: 'badge' }, visible(version)) : null,
      h('a', { class: 'button tiny end', href: href('chat', [], { agent: name }) }, icon('chat'), 'Chat')),
    h('div', { class: 'body stack' }, h('p', { class: description ? null : 'muted', dir: 'auto' }, visible(description || 'It has no description.')),
      delegates.length > 0 ? h('ul', { class: 'tags', 'aria-label': 'Delegates' }, h('li', { class: 'muted small' }, 'Asks'), delegates.map((one) => h('li', null, h('code', null, visible(one))))) : null));
}

customElements.define('w-agents', AgentsView);
