/**
 * The lists that several views show: the newest runs and sessions, the pending approvals, and the
 * settings. They are polled while the page is visible.
 *
 * @import {Api} from './api.js'
 * @import {Run, RunLine, SessionLine, Settings} from './types.js'
 */

import { isAbort } from './api.js';
import { connection } from './connection.js';

const BUSY_MS = 1500;
const IDLE_MS = 4000;
const LONGEST_MS = 15_000;
const LIMIT = 50;

export class Live extends EventTarget {
  /** @param {Api} api */
  constructor(api) {
    super();
    this.api = api;
    /** @type {RunLine[]} */
    this.runs = [];
    /** @type {SessionLine[]} */
    this.sessions = [];
    /** @type {Run[]} The runs that wait for a person. */
    this.approvals = [];
    /** @type {Settings|null} */
    this.settings = null;
    this.isLoaded = false;
    this.life = new AbortController();
    this.source = Symbol('live');
    this.wake = () => {};
    this.failures = 0;
    /** @type {Map<string, {updated: number, run: Run}>} */
    this.details = new Map();
  }

  start() {
    this.life.abort();
    this.life = new AbortController();
    document.addEventListener('visibilitychange', () => this.refresh(), { signal: this.life.signal });
    void this.loop(this.life.signal);
  }

  stop() {
    this.life.abort();
    connection.restored(this.source);
  }

  /** Polls at once, for example after an action. */
  refresh() {
    this.wake();
  }

  /** @param {AbortSignal} signal */
  async loop(signal) {
    while (!signal.aborted) {
      if (!document.hidden || !this.isLoaded) await this.pollOnce(signal);
      const isBusy = this.runs.some((run) => run.status === 'running' || run.status === 'queued');
      const wait = this.failures > 0 ? Math.min(LONGEST_MS, 500 * 2 ** this.failures) : isBusy ? BUSY_MS : IDLE_MS;
      if (this.failures > 0) connection.lost(this.source, wait);
      const pause = new AbortController();
      this.wake = () => pause.abort();
      await connection.pause(wait, AbortSignal.any([signal, pause.signal]));
    }
  }

  /** @param {AbortSignal} signal */
  async pollOnce(signal) {
    try {
      const [runs, sessions, parked] = await Promise.all([
        this.api.runs({ limit: LIMIT }, signal),
        this.api.sessions(LIMIT),
        this.api.runs({ status: 'parked', limit: LIMIT }, signal),
        this.settings ? null : this.api.settings().then((settings) => this.publishSettings(settings)),
      ]);
      const approvals = await Promise.all(parked.runs.map((line) => this.detailsOf(line, signal)));
      if (signal.aborted) return;
      this.runs = runs.runs;
      this.sessions = sessions.sessions;
      this.approvals = approvals;
      this.isLoaded = true;
      this.failures = 0;
      connection.restored(this.source);
      this.dispatchEvent(new Event('change'));
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      this.failures += 1;
    }
  }

  /** @param {Settings} settings */
  publishSettings(settings) {
    this.settings = settings;
    this.dispatchEvent(new Event('settings'));
  }

  /**
   * @param {RunLine} line
   * @param {AbortSignal} signal
   * @returns {Promise<Run>}
   */
  async detailsOf(line, signal) {
    const known = this.details.get(line.id);
    if (known && known.updated === line.updated) return known.run;
    const run = await this.api.run(line.id, signal);
    this.details.set(line.id, { updated: line.updated, run });
    return run;
  }
}
