/**
 * The quiet banner of a lost connection. It lies over the page, so that nothing moves.
 */

import { connection } from '../connection.js';
import { h } from '../dom.js';

/** Shorter interruptions are not worth a banner. */
const DELAY_MS = 900;

export class ConnectionBanner extends HTMLElement {
  constructor() {
    super();
    this.text = h('span');
    this.since = 0;
    this.life = new AbortController();
  }

  connectedCallback() {
    this.className = 'banner';
    this.hidden = true;
    this.setAttribute('role', 'status');
    this.append(this.text, h('button', { class: 'tiny', onclick: () => connection.retryNow() }, 'Try now'));
    connection.addEventListener('change', () => this.update(), { signal: this.life.signal });
    const timer = setInterval(() => this.update(), 500);
    this.life.signal.addEventListener('abort', () => clearInterval(timer));
  }

  disconnectedCallback() {
    this.life.abort();
  }

  update() {
    if (!connection.isLost) {
      this.since = 0;
      this.hidden = true;
      return;
    }
    this.since ||= Date.now();
    if (Date.now() - this.since < DELAY_MS) return;
    const seconds = Math.max(0, Math.ceil((connection.nextAttempt - Date.now()) / 1000));
    const text = `Connection lost. ${seconds > 0 ? `Next attempt in ${seconds} s.` : 'Connecting…'}`;
    // Only the first text is announced: the seconds are for the eye.
    this.text.setAttribute('aria-label', 'Connection lost. The page resumes by itself.');
    if (this.text.textContent !== text) this.text.textContent = text;
    this.hidden = false;
  }
}

customElements.define('w-banner', ConnectionBanner);
