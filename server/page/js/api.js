/**
 * The client of the HTTP API: one method for each route.
 *
 * @import {Agent, Check, Envelope, ExampleResult, ExecResult, HostCall, Integration, MemoryItem, ModelRequest, Program, Run, RunLine,
 *   Session, SessionFile, SessionLine, Settings, Token} from './types.js'
 */

import { ApiError, isAbort, toError } from './api-error.js';
import { toCheck, toReplay, toSettings, toToken } from './normalize.js';

export { ApiError, errorText, isAbort } from './api-error.js';

export class Api {
  /**
   * @param {string} base The server's address without a final slash; empty for the page's own.
   * @param {() => string} token
   * @param {() => void} onUnauthorized
   */
  constructor(base, token, onUnauthorized) {
    this.base = base;
    this.token = token;
    this.onUnauthorized = onUnauthorized;
  }

  /**
   * Sends a request, and returns the response if its status is a success.
   *
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, bytes?: Blob, signal?: AbortSignal, headers?: Record<string, string>}} [options]
   * @returns {Promise<Response>}
   */
  async send(method, path, { body, bytes, signal, headers } = {}) {
    /** @type {Record<string, string>} */
    const all = { authorization: `Bearer ${this.token()}`, ...headers };
    if (body !== undefined) all['content-type'] = 'application/json';
    if (bytes) all['content-type'] = 'application/octet-stream';
    let response;
    try {
      response = await fetch(this.base + path, {
        method, headers: all, body: bytes ?? (body === undefined ? undefined : JSON.stringify(body)),
        signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new ApiError(0, 'offline', 'The server does not respond');
    }
    if (response.ok) return response;
    const failure = await toError(response);
    if (failure.status === 401) this.onUnauthorized();
    throw failure;
  }

  /**
   * @template T
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, signal?: AbortSignal}} [options]
   * @returns {Promise<T>}
   */
  async json(method, path, options) {
    const response = await this.send(method, path, options);
    const text = await response.text();
    return /** @type {T} */ (text === '' ? {} : JSON.parse(text));
  }

  // Runs

  /**
   * @param {{prompt: string, session_id?: string, model?: string, agent?: string, max_steps?: number,
   *   files?: Record<string, string>}} body
   * @returns {Promise<{id: string, session_id: string, status: string}>}
   */
  startRun(body) { return this.json('POST', '/api/run', { body }); }

  /**
   * Sends a message in the session of a run, to its agent.
   *
   * @param {RunLine} run
   * @param {string} prompt
   */
  sendAgain(run, prompt) {
    return this.startRun({ prompt, ...(run.session_id ? { session_id: run.session_id } : {}), ...(run.agent ? { agent: run.agent } : {}) });
  }

  /**
   * @param {string} id
   * @param {AbortSignal} [signal]
   * @returns {Promise<Run>}
   */
  run(id, signal) { return this.json('GET', `/api/run/${seg(id)}`, { signal }); }

  /**
   * @param {Record<string, string|number|undefined>} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<{runs: RunLine[], next: string|null}>}
   */
  runs(query, signal) { return this.json('GET', `/api/runs${search(query)}`, { signal }); }

  /**
   * @param {string} id
   * @param {AbortSignal} [signal]
   * @returns {Promise<{calls: HostCall[]}>}
   */
  calls(id, signal) { return this.json('GET', `/api/run/${seg(id)}/calls`, { signal }); }

  /**
   * Returns the requests to the model, each with its answer.
   *
   * @param {string} id
   * @param {AbortSignal} [signal]
   * @returns {Promise<{requests: ModelRequest[]}>}
   */
  requests(id, signal) { return this.json('GET', `/api/run/${seg(id)}/requests`, { signal }); }

  /**
   * @param {string} id
   * @param {number} after
   * @param {AbortSignal} [signal]
   * @returns {Promise<{events: Envelope[], last: number, done: boolean}>}
   */
  events(id, after, signal) { return this.json('GET', `/api/run/${seg(id)}/events?after=${after}&limit=500`, { signal }); }

  /**
   * @param {string} id
   * @param {string} name
   * @returns {Promise<Blob>}
   */
  async artifact(id, name) { return (await this.send('GET', `/api/run/${seg(id)}/artifacts/${seg(name)}`)).blob(); }

  /** @param {string} id */
  cancel(id) { return this.json('DELETE', `/api/run/${seg(id)}`); }

  /**
   * @param {string} id
   * @param {string} call
   * @param {{approve: boolean, scope: 'once'|'session', reason?: string}} body
   * @returns {Promise<Run>}
   */
  answer(id, call, body) {
    return this.json('POST', `/api/run/${seg(id)}/approvals/${seg(call)}`, { body });
  }

  /** @param {string} id */
  release(id) { return this.json('POST', `/api/run/${seg(id)}/release`, { body: {} }); }

  /**
   * @param {string} id
   * @param {{step: number, message?: string}} body
   * @returns {Promise<{id: string, session_id: string, status: string, state_restored: boolean}>}
   */
  fork(id, body) { return this.json('POST', `/api/run/${seg(id)}/fork`, { body }); }

  /**
   * @param {string} id
   * @returns {Promise<{same: boolean, difference: string}>}
   */
  async replay(id) { return toReplay(await this.json('POST', `/api/run/${seg(id)}/replay`, { body: {} })); }

  /**
   * @param {string} id
   * @returns {Promise<{steps: Record<string, unknown>[]}>}
   */
  trace(id) { return this.json('GET', `/api/traces/${seg(id)}`); }

  // Sessions

  /**
   * @param {number} limit
   * @returns {Promise<{sessions: SessionLine[]}>}
   */
  sessions(limit) { return this.json('GET', `/api/sessions?limit=${limit}`); }

  /**
   * @param {string} id
   * @param {AbortSignal} [signal]
   * @returns {Promise<Session>}
   */
  session(id, signal) { return this.json('GET', `/api/sessions/${seg(id)}`, { signal }); }

  /** @param {string} id */
  deleteSession(id) { return this.json('DELETE', `/api/sessions/${seg(id)}`); }

  /**
   * @param {string} id
   * @returns {Promise<{id: string}>}
   */
  forkSession(id) { return this.json('POST', `/api/sessions/${seg(id)}/fork`, { body: {} }); }

  /**
   * @param {string} id
   * @returns {Promise<Blob>}
   */
  async exportSession(id) {
    return (await this.send('GET', `/api/sessions/${seg(id)}/export`)).blob();
  }

  /**
   * @param {string} id
   * @returns {Promise<{files: SessionFile[]}>}
   */
  files(id) { return this.json('GET', `/api/sessions/${seg(id)}/files`); }

  /**
   * @param {string} id
   * @param {string} path
   * @param {{isBase?: boolean}} [options] With `isBase`, the file of the base folder, without the session's changes.
   * @returns {Promise<Blob>}
   */
  async file(id, path, { isBase = false } = {}) { return (await this.send('GET', `${filePath(id, path)}${isBase ? '?base=true' : ''}`)).blob(); }

  /**
   * @param {string} id
   * @param {string} path
   * @param {Blob} bytes
   */
  putFile(id, path, bytes) { return this.send('PUT', filePath(id, path), { bytes }); }

  /**
   * @param {string} id
   * @param {string} path
   */
  deleteFile(id, path) { return this.send('DELETE', filePath(id, path)); }

  /**
   * Applies the changes of a session to the server's folder.
   *
   * @param {string} id
   * @returns {Promise<{applied: string[], left: {path: string, reason: string}[]}>}
   */
  applyFiles(id) { return this.json('POST', `/api/sessions/${seg(id)}/apply`); }

  /**
   * @param {string} id
   * @returns {Promise<Blob>}
   */
  async filesTar(id) { return (await this.send('GET', `/api/sessions/${seg(id)}/files.tar`)).blob(); }

  // Programs

  /** @returns {Promise<{programs: Program[]}>} */
  catalog() { return this.json('GET', '/api/catalog'); }

  /**
   * @param {string} name
   * @returns {Promise<Program>}
   */
  program(name) { return this.json('GET', `/api/catalog/${seg(name)}`); }

  /**
   * @param {string} name
   * @param {{args: string[], session_id?: string}} body
   * @returns {Promise<ExecResult>}
   */
  runProgram(name, body) { return this.json('POST', `/api/catalog/${seg(name)}/run`, { body }); }

  /**
   * @param {string} body
   * @param {AbortSignal} [signal]
   * @returns {Promise<Check>}
   */
  async check(body, signal) { return toCheck(await this.json('POST', '/api/check', { body: { body }, signal })); }

  /**
   * Returns the host functions, for completion. A server that lacks the route answers 404.
   *
   * @returns {Promise<{functions: {name: string, signature: string, sentence: string}[]}>}
   */
  language() { return this.json('GET', '/api/language'); }

  /**
   * @param {{body: string, args: string[], session_id?: string, fixtures?: Record<string, unknown>}} body
   * @returns {Promise<ExecResult>}
   */
  exec(body) { return this.json('POST', '/api/exec', { body }); }

  /**
   * Runs the examples of a program.
   *
   * @param {string} body
   * @returns {Promise<{examples: ExampleResult[]}>}
   */
  test(body) { return this.json('POST', '/api/test', { body: { body } }); }

  /**
   * @param {string} name
   * @param {{source: string, replace: boolean}} body
   * @returns {Promise<{name: string, file: string}>}
   */
  saveProgram(name, body) { return this.json('PUT', `/api/catalog/${seg(name)}`, { body }); }

  // Agents, memory, variables

  /** @returns {Promise<{agents: Agent[]}>} */
  agents() { return this.json('GET', '/api/agents'); }

  /**
   * @param {string} words If empty, the newest items are returned.
   * @returns {Promise<{items: MemoryItem[]}>}
   */
  memory(words) { return this.json('GET', `/api/memory${search({ words })}`); }

  /** @param {string} text */
  addMemory(text) { return this.json('POST', '/api/memory', { body: { text } }); }

  /** @param {number} id */
  deleteMemory(id) { return this.json('DELETE', `/api/memory/${id}`); }

  /** @returns {Promise<{vars: {key: string, size: number}[]}>} */
  variables() { return this.json('GET', '/api/vars'); }

  /**
   * @param {string} key
   * @returns {Promise<Blob>}
   */
  async variable(key) { return (await this.send('GET', `/api/vars/${seg(key)}`)).blob(); }

  /**
   * @param {string} key
   * @param {string} value
   */
  setVariable(key, value) { return this.send('PUT', `/api/vars/${seg(key)}`, { bytes: new Blob([value]) }); }

  /** @param {string} key */
  deleteVariable(key) { return this.send('DELETE', `/api/vars/${seg(key)}`); }

  // Settings

  /** @returns {Promise<Settings>} */
  async settings() { return toSettings(await this.json('GET', '/api/settings')); }

  /** @returns {Promise<{tokens: Token[]}>} */
  async tokens() {
    const { tokens } = await this.json('GET', '/api/tokens');
    return { tokens: tokens.map(toToken) };
  }

  /**
   * @param {{name: string, scopes?: string[], scope?: string}} body
   * @returns {Promise<{name: string, token: string}>}
   */
  createToken(body) { return this.json('POST', '/api/tokens', { body }); }

  /** @param {string} name */
  deleteToken(name) { return this.json('DELETE', `/api/tokens/${seg(name)}`); }

  /** @returns {Promise<{integrations: Integration[]}>} */
  integrations() { return this.json('GET', '/api/integrations'); }

  /** @param {Integration} body */
  createIntegration(body) { return this.json('POST', '/api/integrations', { body }); }

  /** @param {string} name */
  deleteIntegration(name) { return this.json('DELETE', `/api/integrations/${seg(name)}`); }
}

/** @param {string} text */
function seg(text) {
  return encodeURIComponent(text);
}

/**
 * @param {string} id
 * @param {string} path
 */
function filePath(id, path) {
  return `/api/sessions/${seg(id)}/files/${path.split('/').map(seg).join('/')}`;
}

/** @param {Record<string, string|number|undefined>} query */
function search(query) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') params.set(key, String(value));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}
