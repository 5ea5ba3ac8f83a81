/**
 * The token of the server: read from the address once, and kept by the browser until the user signs
 * out, or for this tab only.
 */

const KEY = 'wattle.token';
let isAsking = false;

/**
 * Moves the token from the address's fragment (`#token=…`) to the browser's storage. Anybody can make
 * such a link, so it replaces another token only if `confirm` resolves to true.
 *
 * @param {() => Promise<boolean>} confirm Asks the user. Further links are ignored in the meantime.
 * @param {() => void} onReplaced Called after another token was replaced.
 */
export function takeTokenFromAddress(confirm, onReplaced) {
  const token = removeTokenFromAddress();
  const current = getToken();
  if (token === '' || token === current || isAsking) return;
  if (current === '') {
    setToken(token);
    return;
  }
  isAsking = true;
  void confirm().then((isConfirmed) => {
    isAsking = false;
    if (!isConfirmed) return;
    setToken(token);
    onReplaced();
  });
}

/** Returns the token of the address, which is then in neither the address nor the history. */
function removeTokenFromAddress() {
  const match = /^#token=([^&]*)(?:&(.*))?$/.exec(location.hash);
  if (!match) return '';
  history.replaceState(null, '', location.pathname + location.search + (match[2] ? `#${match[2]}` : ''));
  const token = match[1] ?? '';
  try {
    return decodeURIComponent(token);
  } catch {
    return token; // It has a bare percent sign.
  }
}

export function getToken() {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? '';
}

/**
 * @param {string} token
 * @param {boolean} [isKept] If true, all tabs have the token until the user signs out. By default, it is kept like the token before it.
 */
export function setToken(token, isKept = sessionStorage.getItem(KEY) === null) {
  (isKept ? sessionStorage : localStorage).removeItem(KEY);
  (isKept ? localStorage : sessionStorage).setItem(KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
}

/**
 * Calls a function when another tab signs in or out.
 *
 * @param {() => void} onChange
 */
export function watchToken(onChange) {
  globalThis.addEventListener('storage', (event) => { if (event.key === KEY) onChange(); });
}
