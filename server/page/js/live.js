/**
 * The lists that several views show: the newest runs and sessions, the pending approvals, and the
 * settings. The server sends each run that changes; the lists are read again whenever the stream
 * begins. A page that is hidden has no stream, because browsers open few connections to a server.
 *
 * @import {Api} from './api.js'
 * @import {Run, RunLine, SessionLine, Settings} from './types.js'
 */

import { ApiError } from './api.js';
import { connection } from './connection.js';
import { debounce } from './dom.js';
import { isEnded } from './events.js';
import { mergeRun } from './runs-list.js';
import { backOff, readStream } from './stream.js';

const LIMIT = 50;
/** Changes that arrive within this time are shown together. */
const TOGETHER_MS = 50;
/** Sessions are read this long after the last of the changes that concern them. */
const SESSIONS_MS = 300;

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
    /** Ends the current connection. */
    this.connected = new AbortController();
    this.source = Symbol('live');
    this.failures = 0;
    /** Counts the times that the lists were read, so that an older answer does not replace a newer one. */
    this.loads = 0;
    /** @type {Map<string, {updated: number, run: Run}>} */
    this.details = new Map();
    this.publish = debounce(() => this.dispatchEvent(new Event('change')), TOGETHER_MS);
    this.readSessions = debounce(() => void this.loadSessions(), SESSIONS_MS);
  }

  start() {
    this.life.abort();
    this.life = new AbortController();
    const { signal } = this.life;
    const go = () => {
      this.connected.abort();
      if (!document.hidden) void this.follow(signal);
    };
    document.addEventListener('visibilitychange', go, { signal });
    if (document.hidden) this.refresh();
    go();
  }

  stop() {
    this.life.abort();
    connection.restored(this.source);
  }

  /** Reads the lists at once, for example after an action. */
  refresh() {
    void this.load(this.life.signal).catch(() => { /* the stream reports a lost connection */ });
  }

  /**
   * Follows the changes until the page is hidden or the signal aborts.
   *
   * @param {AbortSignal} signal
   */
  async follow(signal) {
    this.connected = new AbortController();
    const connected = AbortSignal.any([signal, this.connected.signal]);
    while (!connected.aborted) {
      const attempt = new AbortController();
      const current = AbortSignal.any([connected, attempt.signal]);
      let asked = 0;
      try {
        await readStream(this.api, '/api/runs/stream', current, (messages) => {
          for (const { data } of messages) this.accept(JSON.parse(data), current, attempt);
        });
      } catch (error) {
        if (connected.aborted) return;
        asked = error instanceof ApiError ? error.retryAfter * 1000 : 0;
        connection.lost(this.source, Math.max(asked, backOff(this.failures)));
      }
      attempt.abort();
      const wait = Math.max(asked, backOff(this.failures));
      this.failures += 1;
      await connection.pause(wait, connected);
    }
  }

  /**
   * @param {{type: string, run?: RunLine}} change
   * @param {AbortSignal} signal
   * @param {AbortController} attempt Aborted if the lists cannot be read.
   */
  accept(change, signal, attempt) {
    if (change.run) this.addRun(change.run, signal);
    if (change.type !== 'ready') return;
    const loaded = () => {
      this.failures = 0;
      connection.restored(this.source);
    };
    this.load(signal).then(loaded, () => attempt.abort());
  }

  /**
   * Adds a run that changed.
   *
   * @param {RunLine} run
   * @param {AbortSignal} signal
   */
  addRun(run, signal) {
    const known = this.runs.find((one) => one.id === run.id);
    this.runs = mergeRun(this.runs, run, LIMIT);
    if (!known || known.session_id !== run.session_id || isEnded(run.status)) this.readSessions();
    const waits = this.approvals.some((one) => one.id === run.id);
    if (run.status === 'parked') void this.loadApproval(run, signal);
    else if (waits) this.approvals = this.approvals.filter((one) => one.id !== run.id);
    this.publish();
  }

  /**
   * @param {RunLine} line
   * @param {AbortSignal} signal
   */
  async loadApproval(line, signal) {
    try {
      const run = await this.detailsOf(line, signal);
      const current = this.runs.find((one) => one.id === line.id);
      if (run.status !== 'parked' || (current && current.status !== 'parked')) return;
      this.approvals = [run, ...this.approvals.filter((one) => one.id !== run.id)];
      this.publish();
    } catch { /* read again with the next change, or when the stream begins again */ }
  }

  async loadSessions() {
    try {
      this.sessions = (await this.api.sessions(LIMIT)).sessions;
      this.publish();
    } catch { /* read again when the stream begins again */ }
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    this.loads += 1;
    const load = this.loads;
    const [runs, sessions, parked] = await Promise.all([
      this.api.runs({ limit: LIMIT }, signal),
      this.api.sessions(LIMIT),
      this.api.runs({ status: 'parked', limit: LIMIT }, signal),
      this.settings ? null : this.api.settings().then((settings) => this.publishSettings(settings)),
    ]);
    const approvals = await Promise.all(parked.runs.map((line) => this.detailsOf(line, signal)));
    if (signal.aborted || load !== this.loads) return;
    // A change that arrived meanwhile is newer.
    const newer = this.runs.filter((run) => runs.runs.some((one) => one.id === run.id && one.updated < run.updated));
    this.runs = newer.reduce((all, run) => mergeRun(all, run, LIMIT), runs.runs);
    this.sessions = sessions.sessions;
    this.approvals = approvals.filter((run) => this.runs.find((one) => one.id === run.id)?.status !== 'running');
    this.isLoaded = true;
    this.dispatchEvent(new Event('change'));
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
