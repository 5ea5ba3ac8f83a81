/**
 * The login: asks for the server's token and tries it.
 */

import { ApiError, errorText } from '../api.js';
import { api } from '../app.js';
import { h } from '../dom.js';
import { forgetToken, setToken } from '../token.js';
import { command } from '../parts/bits.js';

/** @param {() => void} onSignedIn */
export function createLogin(onSignedIn) {
  const error = h('p', { class: 'notice bad', role: 'alert', hidden: true });
  const input = h('input', { id: 'token', type: 'password', autocomplete: 'current-password', required: true, 'aria-describedby': 'token-note' });
  const keep = h('input', { type: 'checkbox', checked: true });
  const button = h('button', { class: 'primary', type: 'submit' }, 'Sign in');
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    error.hidden = true;
    button.disabled = true;
    const token = input.value.trim();
    // Other tabs get the token only once the server has accepted it.
    setToken(token, false);
    try {
      await api.settings();
      if (keep.checked) setToken(token, true);
      onSignedIn();
    } catch (failure) {
      forgetToken();
      error.hidden = false;
      error.textContent = failure instanceof ApiError && failure.status === 401 ? 'The server does not accept this token.' : errorText(failure);
      input.select();
    } finally {
      button.disabled = false;
    }
  };
  return h('main', { class: 'login' }, h('form', { class: 'card', onsubmit: submit },
    h('img', { src: 'page/icon.svg', alt: '', width: '40', height: '40' }),
    h('h1', null, 'Sign in to Wattle'),
    h('div', { class: 'field' }, h('label', { for: 'token' }, 'Token'), input,
      h('span', { class: 'note', id: 'token-note' }, '`wattle serve` prints a link that signs in, or names the file of its token.'.split('`').map((part, i) => (i === 1 ? h('code', null, part) : part)))),
    h('label', { class: 'check-field' }, keep, 'Stay signed in on this device'),
    error, button,
    h('p', { class: 'muted small' }, 'To start a server on this machine, run'), command('wattle serve')));
}
