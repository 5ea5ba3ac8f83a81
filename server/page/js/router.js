/**
 * Addresses of views, in the fragment: `#/run/ID/STEP/CALL`, `#/runs?status=failed`.
 *
 * @typedef {object} Route
 * @property {string} view
 * @property {string[]} path The parts after the view's name.
 * @property {URLSearchParams} query
 */

/**
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const [path = '', query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const parts = path.split('/').filter((part) => part !== '').map(decode);
  return { view: parts[0] ?? 'chat', path: parts.slice(1), query: new URLSearchParams(query) };
}

/**
 * Returns the address of a view, such as `#/run/ID/2`.
 *
 * @param {string} view
 * @param {(string|number)[]} [path]
 * @param {Record<string, string|undefined>} [query]
 */
export function href(view, path = [], query = {}) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) params.set(key, value);
  const search = params.toString();
  return `#/${[view, ...path].map((part) => encodeURIComponent(part)).join('/')}${search ? `?${search}` : ''}`;
}

/**
 * Opens a view. With `replace`, the address before it is not kept in the history.
 *
 * @param {string} address
 * @param {{replace?: boolean}} [options]
 */
export function navigate(address, { replace = false } = {}) {
  if (location.hash === address) return;
  if (replace) {
    history.replaceState(null, '', address);
    globalThis.dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = address;
  }
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
