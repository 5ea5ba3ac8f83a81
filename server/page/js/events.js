/**
 * Follows the events of a run: one stream that resumes after a lost connection, without a missing
 * or a repeated event.
 *
 * @import {Api} from './api.js'
 * @import {Envelope, Status} from './types.js'
 */

import { ApiError, isAbort } from './api.js';
import { connection } from './connection.js';
import { backOff, readStream } from './stream.js';

/**
 * @typedef {object} Follower
 * @property {(events: Envelope[]) => void} onEvents Receives each kept event once, and live deltas.
 * @property {() => void} [onResume] Called when the stream is back; deltas may be missing.
 * @property {() => void} [onEnd] Called after the last event.
 * @property {(error: ApiError) => void} [onError] Called if the run cannot be followed at all.
 */

/**
 * Follows a run until its last event, or until the signal aborts.
 *
 * @param {Api} api
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {Follower} follower
 * @param {number} [after]
 */
export async function followRun(api, id, signal, follower, after = 0) {
  const source = Symbol(id);
  let last = after;
  let failures = 0;
  let asked = 0;
  signal.addEventListener('abort', () => connection.restored(source));
  while (!signal.aborted) {
    try {
      const ended = await readOnce(api, id, signal, last, (events) => {
        if (failures > 0) {
          failures = 0;
          connection.restored(source);
          follower.onResume?.();
        }
        const fresh = events.filter((event) => event.seq === undefined || isDelta(event) || event.seq > last);
        for (const event of fresh) if (!isDelta(event)) last = Math.max(last, event.seq ?? 0);
        if (fresh.length > 0) follower.onEvents(fresh);
        return fresh.some((event) => isLast(event));
      });
      if (ended || (await hasEnded(api, id, signal))) {
        connection.restored(source);
        follower.onEnd?.();
        return;
      }
      asked = 0;
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      asked = error instanceof ApiError ? error.retryAfter * 1000 : 0;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        connection.restored(source);
        follower.onError?.(error);
        return;
      }
    }
    const wait = Math.max(asked, backOff(failures));
    failures += 1;
    connection.lost(source, wait);
    await connection.pause(wait, signal);
  }
}

/**
 * Reads one connection to its end. Returns true if the run's last event was among its events.
 *
 * @param {Api} api
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {number} after
 * @param {(events: Envelope[]) => boolean} accept Called with an empty list when connected.
 */
async function readOnce(api, id, signal, after, accept) {
  let ended = false;
  await readStream(api, `/api/run/${encodeURIComponent(id)}/stream?after=${after}`, signal, (messages) => {
    ended = accept(messages.flatMap(toEnvelope)) || ended;
  });
  return ended;
}

/**
 * @param {{id: string|null, data: string}} message
 * @returns {Envelope[]}
 */
function toEnvelope(message) {
  try {
    /** @type {Envelope} */
    const event = JSON.parse(message.data);
    if (message.id !== null && message.id !== '') event.seq = Number(message.id);
    return [event];
  } catch {
    return [];
  }
}

/** @param {Envelope} event */
function isDelta(event) {
  return event.type === 'delta';
}

/** @param {Envelope} event */
function isLast(event) {
  const isRoot = event.run_id === event.root_run_id;
  return isRoot && (event.type === 'response' || event.type === 'error');
}

/**
 * @param {Api} api
 * @param {string} id
 * @param {AbortSignal} signal
 */
async function hasEnded(api, id, signal) {
  const run = await api.run(id, signal);
  return isEnded(run.status);
}

/** @param {Status} status */
export function isEnded(status) {
  return status !== 'queued' && status !== 'running' && status !== 'parked';
}
