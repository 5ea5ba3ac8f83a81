/**
 * The base class of the views.
 *
 * @import {Route} from './router.js'
 */

import { setTitle } from './title.js';

export class View extends HTMLElement {
  constructor() {
    super();
    /** Aborts when the view leaves the page: pass its signal to requests and listeners. */
    this.life = new AbortController();
    /** @type {Route} */
    this.route = { view: '', path: [], query: new URLSearchParams() };
  }

  /** @returns {AbortSignal} */
  get signal() {
    return this.life.signal;
  }

  connectedCallback() {
    this.className = `view ${this.localName}`;
    this.open(this.route);
  }

  disconnectedCallback() {
    this.life.abort();
  }

  /**
   * Shows a route. Called again when only the rest of the address changes.
   *
   * @param {Route} _route
   */
  open(_route) {}

  /** @param {string} title */
  setTitle(title) {
    setTitle(title);
  }

  /**
   * Listens to a target for as long as the view is on the page.
   *
   * @param {EventTarget} target
   * @param {string} type
   * @param {(event: any) => void} listener
   */
  listen(target, type, listener) {
    target.addEventListener(type, listener, { signal: this.signal });
  }
}
