/**
 * Short messages at the top of the page, and announcements for screen readers.
 */

import { errorText } from '../api.js';
import { h, prose } from '../dom.js';
import { visible } from '../format.js';
import { icon } from './icon.js';

const toasts = h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' });
const spoken = h('div', { class: 'visually-hidden', role: 'log', 'aria-live': 'polite', 'aria-label': 'Activity' });

/** Returns the regions, which the page needs once. */
export function notificationRegions() {
  return [toasts, spoken];
}

/** A message is shown at least this long, also if the view changes meanwhile. */
const SHOWN_MS = 500;

/** Removes the messages of the previous view. */
export function dismissOld() {
  for (const item of [...toasts.children]) if (performance.now() - Number(/** @type {HTMLElement} */ (item).dataset.at) > SHOWN_MS) item.remove();
}

/**
 * Shows a message for some seconds.
 *
 * @param {string} text
 * @param {{isError?: boolean}} [options]
 */
export function notify(text, { isError = false } = {}) {
  const close = () => item.remove();
  const item = h('div', { class: `toast${isError ? ' bad' : ''}`, 'data-at': performance.now() }, h('span', null, prose(text)),
    h('button', { class: 'icon-only', 'aria-label': 'Dismiss', onclick: close }, icon('close')));
  toasts.append(item);
  while (toasts.childElementCount > 3) toasts.firstElementChild?.remove();
  setTimeout(close, isError ? 9000 : 4000);
}

/** @param {unknown} error */
export function notifyError(error) {
  notify(errorText(error), { isError: true });
}

/**
 * Tells screen readers what happened, without showing it.
 *
 * @param {string} text
 */
export function announce(text) {
  spoken.append(h('p', null, visible(text)));
  while (spoken.childElementCount > 5) spoken.firstElementChild?.remove();
}

/**
 * Returns the listener of a button whose action takes a while.
 *
 * @param {() => Promise<unknown>} action
 * @returns {(event: MouseEvent) => void}
 */
export function act(action) {
  return (event) => void busy(/** @type {HTMLButtonElement} */ (event.currentTarget), action);
}

/**
 * Runs an action of a button: the button is disabled until it is done, and an error is shown.
 *
 * @param {HTMLButtonElement} button
 * @param {() => Promise<unknown>} action
 */
export async function busy(button, action) {
  button.disabled = true;
  try {
    await action();
  } catch (error) {
    notifyError(error);
  } finally {
    button.disabled = false;
  }
}
