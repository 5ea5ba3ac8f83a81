/**
 * The page's title: the count of pending approvals, and the name of the view.
 */

let title = '';
let pending = 0;

/** @param {string} text */
export function setTitle(text) {
  title = text;
  show();
}

/** @param {number} count */
export function setPending(count) {
  pending = count;
  show();
}

function show() {
  document.title = `${pending > 0 ? `(${pending}) ` : ''}${title ? `${title} – ` : ''}Wattle`;
}
