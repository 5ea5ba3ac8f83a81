/**
 * The token of the server: read from the address once, and kept for this tab only.
 */

const KEY = 'wattle.token';

/**
 * Moves the token from the address's fragment (`#token=…`) to the tab's storage, so that it is in
 * neither the address nor the history.
 */
export function takeTokenFromAddress() {
  const match = /^#token=([^&]+)(?:&(.*))?$/.exec(location.hash);
  if (!match) return;
  let token = match[1] ?? '';
  try {
    token = decodeURIComponent(token);
  } catch { /* a token with a bare percent sign is taken as it is */ }
  sessionStorage.setItem(KEY, token);
  history.replaceState(null, '', location.pathname + location.search + (match[2] ? `#${match[2]}` : ''));
}

export function getToken() {
  return sessionStorage.getItem(KEY) ?? '';
}

/** @param {string} token */
export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}
