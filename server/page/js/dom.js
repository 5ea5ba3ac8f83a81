/**
 * Builds DOM nodes. Strings become text nodes only; no function here parses HTML.
 *
 * @typedef {Node|string|number|null|undefined|false|any[]} Child A list is a list of children.
 * @typedef {Record<string, any>} Props
 */

import { visible } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked', 'selected', 'indeterminate', 'scrollTop']);

/**
 * Creates an element. A property that starts with `on` adds a listener, `true` and `false` set a
 * boolean attribute, and every other one sets an attribute.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props|null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  if (props) setProps(element, props);
  append(element, children);
  return element;
}

/**
 * Creates an SVG element.
 *
 * @param {string} tag
 * @param {Props|null} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  if (props) setProps(element, props);
  append(element, children);
  return element;
}

/**
 * Sets properties as `h` does.
 *
 * @param {Element} element
 * @param {Props} props
 */
export function setProps(element, props) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith('on') && typeof value === 'function') {
      element.addEventListener(key.slice(2), value);
    } else if (PROPERTIES.has(key)) {
      /** @type {any} */ (element)[key] = value;
    } else if (typeof value === 'boolean' && !key.startsWith('aria-')) {
      element.toggleAttribute(key, value);
    } else {
      element.setAttribute(key, String(value));
    }
  }
}

/**
 * Returns a message of the server as children, with its `code` as elements.
 *
 * @param {string} text
 * @returns {Child[]}
 */
export function prose(text) {
  return visible(text).split(/`([^`\n]+)`/).map((part, i) => (i % 2 === 0 ? part : h('code', { class: 'inline' }, part)));
}

/**
 * Appends children; skips `null`, `undefined` and `false`.
 *
 * @param {Node} parent
 * @param {Child[]} children
 */
export function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces all children of an element.
 *
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * Sets an element's text, and leaves the DOM alone if it is already that text.
 *
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Returns a function that runs `draw` once in the next animation frame, however often it is called.
 * With `rest`, the next run waits for so many times as long as the last frame took, so that slow
 * drawing leaves time for the user's input.
 *
 * @param {() => void} draw
 * @param {number} [rest]
 * @returns {() => void}
 */
export function oncePerFrame(draw, rest = 0) {
  let isWanted = false;
  let isBusy = false;
  const next = () => {
    isBusy = isWanted;
    if (isBusy) requestAnimationFrame(frame);
  };
  const frame = () => {
    isWanted = false;
    const start = performance.now();
    try {
      draw();
    } finally {
      if (rest === 0) next();
      // The first timer ends after the browser's own work for this frame: layout and painting.
      else setTimeout(() => setTimeout(next, rest * (performance.now() - start)));
    }
  };
  return () => {
    isWanted = true;
    if (!isBusy) next();
  };
}

/**
 * Returns a function that runs `action` after a pause without calls.
 *
 * @param {() => void} action
 * @param {number} ms
 */
export function debounce(action, ms) {
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, ms);
  };
}

let lastId = 0;

/**
 * Returns an id that no other element of the page has.
 *
 * @param {string} prefix
 */
export function uniqueId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}
