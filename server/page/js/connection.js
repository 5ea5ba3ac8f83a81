/**
 * The state of the connection to the server, over all streams and polls of the page.
 */

class Connection extends EventTarget {
  constructor() {
    super();
    /** @type {Map<symbol, number>} The time of each lost source's next attempt. */
    this.sources = new Map();
    /** @type {Set<() => void>} */
    this.waiting = new Set();
    globalThis.addEventListener?.('online', () => this.retryNow());
  }

  get isLost() {
    return this.sources.size > 0;
  }

  /** The time of the next attempt. */
  get nextAttempt() {
    return Math.min(...this.sources.values());
  }

  /**
   * @param {symbol} source
   * @param {number} waitMs
   */
  lost(source, waitMs) {
    this.sources.set(source, Date.now() + waitMs);
    this.dispatchEvent(new Event('change'));
  }

  /** @param {symbol} source */
  restored(source) {
    if (this.sources.delete(source)) this.dispatchEvent(new Event('change'));
  }

  /** Ends all pauses, so that every source tries again at once. */
  retryNow() {
    for (const wake of [...this.waiting]) wake();
  }

  /**
   * Waits, unless `retryNow` or the signal ends it.
   *
   * @param {number} ms
   * @param {AbortSignal} signal
   * @returns {Promise<void>}
   */
  pause(ms, signal) {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}

export const connection = new Connection();
