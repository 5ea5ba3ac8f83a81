/**
 * The state of a run that stays up to date: follows its events, folds them, and reports which steps
 * changed, at most once for each animation frame, and less often if drawing is slow.
 *
 * @import {Api} from './api.js'
 * @import {HostCall, ModelRequest, Run, RunLine} from './types.js'
 * @import {RunState} from './run-state.js'
 */

import { ApiError } from './api.js';
import { oncePerFrame } from './dom.js';
import { followRun, isEnded } from './events.js';
import { applyEvent, createRun, dropLive, expectStep } from './run-model.js';

const HOST_CALLS_MS = 1000;
/** Drawing takes at most about a third of the time, however fast events arrive. */
const REST = 2;

/**
 * @typedef {object} FeedListener
 * @property {(from: number) => void} onChange Receives the index of the first changed step.
 * @property {(line: RunLine) => void} [onLine] Receives the run's newest status.
 * @property {(error: ApiError) => void} [onError]
 */

export class RunFeed {
  /**
   * @param {Api} api
   * @param {RunLine|Run} line
   * @param {AbortSignal} signal
   * @param {FeedListener} listener
   * @param {{tree?: boolean}} [options] With `tree`, the state also has the child runs.
   */
  constructor(api, line, signal, listener, { tree = false } = {}) {
    this.api = api;
    /** @type {RunLine|Run} */
    this.line = line;
    this.signal = signal;
    this.listener = listener;
    this.tree = tree && !line.parent;
    /** @type {RunState} */
    this.state = createRun(line.id, line.created);
    /** @type {Map<string, HostCall[]>} Host calls by the program's key, `STEP.CALL`. */
    this.hostCalls = new Map();
    /** @type {Map<string, {at: number, read: Promise<ModelRequest[]>}>} The requests by run. */
    this.known = new Map();
    this.hostCallsAt = -1;
    this.hasHostCalls = true;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.hostCallsTimer = undefined;
    this.hostCallsTime = 0;
    this.changed = Infinity;
    this.isLoaded = false;
    this.flush = oncePerFrame(() => {
      if (this.signal.aborted) return;
      const from = this.changed;
      this.changed = Infinity;
      if (!isEnded(this.line.status)) expectStep(this.state, Date.now());
      this.listener.onChange(Number.isFinite(from) ? from : 0);
    }, REST);
  }

  start() {
    void followRun(this.api, this.line.id, this.signal, {
      onEvents: (events) => {
        this.isLoaded = true;
        for (const event of events) {
          this.changed = Math.min(this.changed, applyEvent(this.state, event));
          if (event.run_id === this.line.id && (event.type === 'parked' || event.type === 'response' || event.type === 'error')) void this.refreshLine();
        }
        this.flush();
      },
      onResume: () => dropLive(this.state),
      onEnd: () => {
        this.isLoaded = true;
        void this.refreshLine();
        this.flush();
      },
      onError: (error) => this.listener.onError?.(error),
    }, { tree: this.tree });
    if (!isEnded(this.line.status)) this.flush();
    return this;
  }

  /** Reads the run's status again. */
  async refreshLine() {
    try {
      this.setLine(await this.api.run(this.line.id, this.signal));
    } catch { /* the stream reports a lost connection */ }
  }

  /** @param {RunLine|Run} line */
  setLine(line) {
    if (this.signal.aborted || line.updated < this.line.updated) return;
    this.line = { ...this.line, ...line };
    if (line.status === 'running') this.state.parked.clear();
    this.listener.onLine?.(this.line);
  }

  /**
   * Returns the requests to the model of the run or one of its child runs, read again if events have
   * arrived since.
   *
   * @param {string} run
   */
  requests(run) {
    let known = this.known.get(run);
    if (known?.at !== this.state.lastSeq) {
      known = { at: this.state.lastSeq, read: this.api.requests(run, this.signal).then(({ requests }) => requests) };
      this.known.set(run, known);
    }
    return known.read;
  }

  /** Reads the recorded host calls, if events have arrived since, and at most once a second. */
  loadHostCalls() {
    if (!this.hasHostCalls || this.hostCallsAt === this.state.lastSeq || this.hostCallsTimer !== undefined) return;
    const wait = Math.max(0, this.hostCallsTime + HOST_CALLS_MS - Date.now());
    this.hostCallsTimer = setTimeout(() => {
      this.hostCallsTimer = undefined;
      void this.readHostCalls();
    }, wait);
  }

  async readHostCalls() {
    if (this.signal.aborted) return;
    this.hostCallsAt = this.state.lastSeq;
    this.hostCallsTime = Date.now();
    try {
      const { calls } = await this.api.calls(this.line.id, this.signal);
      this.hostCalls = new Map();
      for (const call of calls) {
        const key = `${call.step}.${call.program}`;
        const list = this.hostCalls.get(key);
        if (list) list.push(call);
        else this.hostCalls.set(key, [call]);
      }
      this.changed = 0;
      this.flush();
    } catch (error) {
      // A server without the route is not asked again for this run; the tab says that there are none.
      if (error instanceof ApiError && error.status === 404) this.hasHostCalls = false;
    }
  }
}
