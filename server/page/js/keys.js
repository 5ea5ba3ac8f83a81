/**
 * The page's keys. Views handle their own; these are the ones that work everywhere, and the list of
 * all for the help dialog.
 */

import { PLACES } from './places.js';

export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.userAgent ?? '');

/** @type {{title: string, keys: [string, string][]}[]} */
export const KEYS = [
  { title: 'Everywhere', keys: [
    [isMac ? '⌘ K' : 'Ctrl K', 'Search all'], ['?', 'Show the keys'], ['n', 'Start a new chat'], ['/', 'Move to the search field'],
    ...PLACES.map(({ key, label }) => /** @type {[string, string]} */ ([`g ${key}`, `Open ${label.toLowerCase()}`])),
  ] },
  { title: 'Chat', keys: [['Enter', 'Send the message'], ['Shift Enter', 'Start a new line'], ['↑', 'Edit the last message in a fork of the session'], ['Esc', 'Stop the run']] },
  { title: 'Run', keys: [
    ['↑ ↓', 'Select a row'], ['← →', 'Close or open a row; in a replay, the previous or next step'], ['Enter', 'Show the selected row'],
    ['f', 'Follow the newest step'], ['r', 'Start or end the replay'], ['1 … 7', 'Select a tab of the inspector'],
  ] },
  { title: 'Approvals', keys: [['y', 'Approve once'], ['s', 'Approve for the session'], ['n', 'Deny'], ['↑ ↓', 'Select a card']] },
  { title: 'Sandbox', keys: [['Ctrl Enter', 'Run the program'], ['Ctrl Space', 'Complete the word'], ['Tab', 'Indent; Esc, then Tab, leaves the editor']] },
];

/**
 * Returns true if a key goes to a field, not to the page.
 *
 * @param {KeyboardEvent} event
 */
export function isTyping(event) {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type="checkbox"], [type="radio"]), textarea, select'));
}

/**
 * Installs the keys that work everywhere.
 *
 * @param {{openPalette: () => void, openHelp: () => void, navigate: (address: string) => void}} actions
 */
export function installKeys({ openPalette, openHelp, navigate }) {
  let isGoing = false;
  document.addEventListener('keydown', (event) => {
    if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      openPalette();
      return;
    }
    const isModified = event.metaKey || event.ctrlKey || event.altKey;
    if (isModified || isTyping(event) || event.defaultPrevented || document.querySelector('dialog[open]')) return;
    if (isGoing) {
      isGoing = false;
      const place = PLACES.find((one) => one.key === event.key);
      if (place) {
        event.preventDefault();
        navigate(`#/${place.view}`);
      }
      return;
    }
    if (event.key === '?') openHelp();
    else if (event.key === 'g') {
      isGoing = true;
      setTimeout(() => { isGoing = false; }, 1500);
    } else if (event.key === '/') {
      const field = /** @type {HTMLElement|null} */ (document.querySelector('main input[type="search"]'));
      if (field) field.focus();
      else openPalette();
    } else if (event.key === 'n' && !location.hash.startsWith('#/approvals')) navigate('#/chat');
    else return;
    event.preventDefault();
  });
}
