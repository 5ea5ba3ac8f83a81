/**
 * Tabs with the keyboard behaviour of the ARIA pattern: arrow keys move, only one is in the order.
 */

import { fill, h, uniqueId } from '../dom.js';

/**
 * @typedef {{id: string, label: string, count?: number}} Tab
 */

/**
 * @param {string} label
 * @param {(id: string) => void} onSelect
 */
export function createTabs(label, onSelect) {
  const prefix = uniqueId('tab');
  const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': label });
  const panel = h('div', { class: 'tab-panel', role: 'tabpanel', id: `${prefix}-panel`, tabindex: '0' });
  /** @type {Tab[]} */
  let tabs = [];
  let current = '';
  const draw = () => {
    const hadFocus = list.contains(document.activeElement);
    fill(list, tabs.map((tab) => h('button', {
      type: 'button', role: 'tab', id: `${prefix}-${tab.id}`, 'aria-selected': tab.id === current, 'aria-controls': `${prefix}-panel`,
      tabindex: tab.id === current ? '0' : '-1', onclick: () => select(tab.id, true),
    }, tab.label, tab.count ? h('span', { class: 'count' }, String(tab.count)) : null)));
    panel.setAttribute('aria-labelledby', `${prefix}-${current}`);
    if (hadFocus) /** @type {HTMLElement|null} */ (list.querySelector('[aria-selected="true"]'))?.focus();
  };
  /**
   * @param {string} id
   * @param {boolean} isUser
   */
  const select = (id, isUser) => {
    current = id;
    draw();
    if (isUser) onSelect(id);
  };
  list.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const index = tabs.findIndex((tab) => tab.id === current);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    if (next) select(next.id, true);
  });
  return {
    list, panel,
    /**
     * @param {Tab[]} next
     * @param {string} selected
     */
    update(next, selected) {
      const isSame = selected === current && JSON.stringify(next) === JSON.stringify(tabs);
      tabs = next;
      current = selected;
      if (!isSame) draw();
    },
  };
}
