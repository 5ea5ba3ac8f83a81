/**
 * What all views share: the client of the API and the live lists.
 */

import { Api } from './api.js';
import { Live } from './live.js';
import { forgetToken, getToken } from './token.js';

/** Tells the page that the token is missing or wrong. */
export const session = new EventTarget();

export const api = new Api('', getToken, () => {
  forgetToken();
  session.dispatchEvent(new Event('signed-out'));
});

export const live = new Live(api);
