/**
 * Reads one connection of a stream of server-sent events.
 *
 * @import {Api} from './api.js'
 * @import {Message} from './sse.js'
 */

import { ApiError, isAbort } from './api.js';
import { SseParser } from './sse.js';

/** Without a byte for this long (the server sends a heartbeat every 15 s) a stream is dead. */
const SILENCE_MS = 40_000;
const BACK_OFF_MS = [300, 700, 1500, 3000, 6000, 10_000];

/**
 * Reads a stream to its end.
 *
 * @param {Api} api
 * @param {string} path
 * @param {AbortSignal} signal
 * @param {(messages: Message[]) => void} accept Called with an empty list when connected.
 */
export async function readStream(api, path, signal, accept) {
  const silence = new AbortController();
  const stop = () => silence.abort();
  signal.addEventListener('abort', stop, { once: true });
  let timer = setTimeout(stop, SILENCE_MS);
  try {
    const response = await api.send('GET', path, { signal: silence.signal, headers: { accept: 'text/event-stream' } });
    accept([]);
    const reader = response.body?.getReader();
    if (!reader) return;
    const parser = new SseParser();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE_MS);
      const messages = parser.push(decoder.decode(value, { stream: true }));
      if (messages.length > 0) accept(messages);
    }
  } catch (error) {
    if (isAbort(error) && !signal.aborted) throw new ApiError(0, 'silent', 'The stream is silent');
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

/**
 * Returns the time before the next attempt to connect, in milliseconds.
 *
 * @param {number} failures
 */
export function backOff(failures) {
  return BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0;
}
