/**
 * The settings: what is set and where it comes from, the theme, a test of the model, tokens and
 * integrations.
 *
 * @import {Settings} from '../types.js'
 */

import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { bytes, number, visible } from '../format.js';
import { loadError, notice, skeleton } from '../parts/bits.js';
import { integrationsCard } from '../parts/integrations-card.js';
import { modelTest } from '../parts/model-test.js';
import { tokensCard } from '../parts/tokens-card.js';
import { getTheme, setTheme } from '../themes.js';
import { forgetToken } from '../token.js';
import { View } from '../view.js';

class SettingsView extends View {
  constructor() {
    super();
    this.content = h('div', { class: 'page narrow' }, skeleton(8));
  }

  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Settings');
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Settings'), h('div', { class: 'actions' },
      h('button', { onclick: signOut }, 'Sign out'))), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Settings' }, this.content));
    void this.load();
  }

  async load() {
    try {
      const settings = await api.settings();
      live.publishSettings(settings);
      fill(this.content, themeCard(), serverCard(settings), modelTest(settings), settings.settings.length > 0 ? settingsCard(settings) : null, tokensCard(settings), integrationsCard());
    } catch (error) {
      fill(this.content, loadError(error, () => void this.load()));
    }
  }
}

/** Forgets the token, and all that the page has loaded with it. */
function signOut() {
  forgetToken();
  sessionStorage.clear();
  location.reload();
}

function themeCard() {
  const themes = /** @type {const} */ (['system', 'light', 'dark']);
  const words = { system: 'As the system', light: 'Light', dark: 'Dark' };
  return card('Theme', h('div', { class: 'row wrap', role: 'radiogroup', 'aria-label': 'Theme' }, themes.map((theme) => h('label', { class: 'check-field' },
    h('input', { type: 'radio', name: 'theme', value: theme, checked: getTheme() === theme, onchange: () => setTheme(theme) }), words[theme]))));
}

/** @type {['max_steps'|'body_bytes'|'file_bytes', string, (value: number) => string][]} */
const LIMITS = [['max_steps', 'Most steps of a run', number], ['body_bytes', 'Largest request', bytes], ['file_bytes', 'Largest file', bytes]];

/** @param {Settings} settings */
function serverCard(settings) {
  /** @type {[string, string][]} */
  const facts = [
    ['Version', settings.version], ['Model', settings.model], ['Agent', settings.agent], ['Tenant', settings.tenant], ['Scopes of this token', settings.scopes.join(', ')],
    ['Trusted runs', settings.exec ? 'allowed' : 'not allowed'], ...LIMITS.flatMap(([key, label, show]) => (settings[key] ? [/** @type {[string, string]} */ ([label, show(settings[key])])] : [])),
  ];
  return card('Server', settings.model_problem ? notice('attention', `No run can ask a model: ${settings.model_problem}.`) : null, h('dl', { class: 'facts-list' }, facts.map(([key, value]) => [h('dt', null, key), h('dd', { class: 'mono' }, visible(value))])));
}

/** @param {Settings} settings */
function settingsCard(settings) {
  return card('Values and their origin', h('p', { class: 'muted' }, 'The server reads them when it starts: from wattle.toml, the environment and the command line.'), h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of values' }, h('table', null, h('thead', null, h('tr', null, ['Setting', 'Value', 'Origin'].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', null, settings.settings.map((one) => h('tr', null, h('td', { class: 'mono' }, visible(one.key)), h('td', { class: 'mono value' }, one.value === null ? h('span', { class: 'muted' }, 'not set') : visible(typeof one.value === 'string' ? one.value : JSON.stringify(one.value))), h('td', { class: 'muted' }, visible(one.origin))))))));
}

/**
 * @param {string} title
 * @param {...(HTMLElement|null)} body
 */
function card(title, ...body) {
  return h('section', { class: 'card', 'aria-label': title }, h('header', null, h('h2', null, title)), h('div', { class: 'body stack' }, body));
}

customElements.define('w-settings', SettingsView);
