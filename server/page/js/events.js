/**
 * Follows the events of a run: one stream that resumes after a lost connection, without a missing
 * or a repeated event.
 *
 * @import {Api} from './api.js'
 * @import {Message} from './sse.js'
 * @import {Envelope, Status} from './types.js'
 */

import { ApiError, isAbort } from './api.js';
import { connection } from './connection.js';
import { backOff, readStream } from './stream.js';

/**
 * @typedef {object} Follower
 * @property {(events: Envelope[]) => void} onEvents Receives each kept event once, and live deltas.
 * @property {() => void} [onResume] Called when the stream is back. It sends the live events since the newest kept one again.
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
 * @param {{tree?: boolean}} [options] With `tree`, also follows the child runs. Only a run at the top has a tree.
 */
export async function followRun(api, id, signal, follower, { tree = false } = {}) {
  const source = Symbol(id);
  /** The `id` of the newest kept event, from which the server goes on. */
  let last = '';
  /** @type {Map<string, number>} The number of the newest kept event of each run. */
  const seen = new Map();
  let failures = 0;
  let asked = 0;
  signal.addEventListener('abort', () => connection.restored(source));
  while (!signal.aborted) {
    try {
      const query = new URLSearchParams({ ...(tree ? { tree: 'true' } : {}), ...(last ? { after: last } : {}) }).toString();
      let ended = false;
      await readStream(api, `/api/run/${encodeURIComponent(id)}/stream${query && `?${query}`}`, signal, (messages) => {
        if (failures > 0) {
          failures = 0;
          connection.restored(source);
          follower.onResume?.();
        }
        const fresh = [];
        for (const message of messages) {
          const event = toEnvelope(message);
          if (!event || event.type === 'suspended') continue;
          const seq = event.seq ?? 0;
          // An event without an id is live: its number is that of the kept event before it.
          event.isLive = !message.id;
          if (message.id) {
            if (seq <= (seen.get(event.run_id) ?? 0)) continue;
            seen.set(event.run_id, seq);
            last = message.id;
          }
          fresh.push(event);
          ended ||= isLast(event);
        }
        if (fresh.length > 0) follower.onEvents(fresh);
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
 * @param {Message} message
 * @returns {Envelope|null}
 */
function toEnvelope({ data }) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
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
