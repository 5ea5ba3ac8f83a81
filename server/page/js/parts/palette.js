/**
 * The command palette: searches places, chats, runs and programs.
 *
 * @import {IconName} from './icon.js'
 *
 * @typedef {{group: string, label: string, note?: string, icon: IconName, open: () => void}} Entry
 */

import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { firstLine, shortId, visible } from '../format.js';
import { PLACES } from '../places.js';
import { href, navigate } from '../router.js';
import { sessionTitle } from '../runs-list.js';
import { setTheme } from '../themes.js';
import { openHelp } from './dialogs.js';
import { icon } from './icon.js';

const PER_GROUP = 6;
/** @type {import('../types.js').Program[]} */
let programs = [];

export function openPalette() {
  if (document.querySelector('dialog[open]')) return;
  if (programs.length === 0) void api.catalog().then((found) => { programs = found.programs; draw(); }, () => {});
  /** @type {Entry[]} */
  let entries = [];
  let selected = 0;
  const input = h('input', {
    type: 'text', role: 'combobox', placeholder: 'Search chats, runs, programs and places', 'aria-label': 'Search all', 'aria-expanded': 'true',
    'aria-controls': 'palette-list', 'aria-autocomplete': 'list', autocomplete: 'off', spellcheck: 'false',
  });
  const list = h('div', { role: 'listbox', id: 'palette-list', 'aria-label': 'Results', tabindex: '-1' });
  const status = h('div', { class: 'visually-hidden', role: 'status' });
  const dialog = h('dialog', { class: 'palette', 'aria-label': 'Search all' }, input, list, status);

  /** @param {Entry|undefined} entry */
  const choose = (entry) => {
    if (!entry) return;
    dialog.close();
    entry.open();
  };
  const select = (/** @type {number} */ index) => {
    selected = Math.max(0, Math.min(entries.length - 1, index));
    for (const option of list.querySelectorAll('[role="option"]')) {
      const isSelected = option.id === `palette-${selected}`;
      option.setAttribute('aria-selected', String(isSelected));
      if (isSelected) option.scrollIntoView({ block: 'nearest' });
    }
    if (entries.length > 0) input.setAttribute('aria-activedescendant', `palette-${selected}`);
    else input.removeAttribute('aria-activedescendant');
  };
  function draw() {
    entries = search(input.value);
    const groups = groupBy(entries);
    let index = 0;
    fill(list, groups.map(([group, members]) => h('div', { role: 'group', 'aria-label': group }, h('div', { class: 'heading', 'aria-hidden': 'true' }, group),
      members.map((entry) => h('div', { role: 'option', id: `palette-${index++}`, 'aria-selected': 'false', onclick: () => choose(entry) },
        icon(entry.icon), h('span', { class: 'ellipsis', dir: 'auto' }, entry.label), entry.note ? h('span', { class: 'note ellipsis' }, entry.note) : null)))));
    if (entries.length === 0) fill(list, h('div', { class: 'nothing', role: 'option', 'aria-selected': 'false' }, 'Nothing matches. Try fewer letters.'));
    status.textContent = `${entries.length} results`;
    select(0);
  }
  input.addEventListener('input', draw);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') select((selected + 1) % Math.max(1, entries.length));
    else if (event.key === 'ArrowUp') select((selected - 1 + entries.length) % Math.max(1, entries.length));
    else if (event.key === 'Enter') choose(entries[selected]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  draw();
}

/**
 * @param {Entry[]} entries
 * @returns {[string, Entry[]][]}
 */
function groupBy(entries) {
  /** @type {Map<string, Entry[]>} */
  const groups = new Map();
  for (const entry of entries) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
  return [...groups];
}

/**
 * @param {string} text
 * @returns {Entry[]}
 */
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  const matches = (/** @type {string} */ label) => words.every((word) => label.toLowerCase().includes(word));
  const go = (/** @type {string} */ address) => () => navigate(address);
  /** @type {Entry[]} */
  const places = PLACES.map(({ view, label, icon: name }) => ({ group: 'Places', label: view === 'chat' ? 'New chat' : label, icon: name, open: go(href(view)) }));
  places.push({ group: 'Places', label: 'Failed runs', icon: 'runs', open: go(href('runs', [], { status: 'failed' })) });
  places.push({ group: 'Places', label: 'Keys', icon: 'help', open: openHelp });
  for (const theme of /** @type {const} */ (['light', 'dark', 'system'])) {
    places.push({ group: 'Places', label: `Theme: ${theme}`, icon: 'moon', open: () => setTheme(theme) });
  }
  const chats = live.sessions.map((one) => ({ group: 'Chats', label: sessionTitle(one, live.runs), icon: /** @type {IconName} */ ('chat'), open: go(href('chat', [one.id])) }));
  const runs = live.runs.map((one) => ({ group: 'Runs', label: visible(firstLine(one.prompt)), note: `${one.status} · ${shortId(one.id)}`, icon: /** @type {IconName} */ ('runs'), open: go(href('run', [one.id])) }));
  const all = programs.map((one) => ({ group: 'Programs', label: one.name, note: visible(one.description), icon: /** @type {IconName} */ ('catalog'), open: go(href('catalog', [one.name])) }));
  return [places, chats, runs, all].flatMap((group) => group.filter((entry) => matches(`${entry.label} ${/** @type {Entry} */ (entry).note ?? ''}`))
    .slice(0, words.length === 0 && group === places ? PLACES.length : PER_GROUP));
}
