/**
 * Filters and sorts runs. It has no DOM.
 *
 * @import {RunLine} from './types.js'
 *
 * @typedef {object} Filter
 * @property {string} status
 * @property {string} agent
 * @property {string} tool
 * @property {number} hours Maximum age; 0 for any.
 * @property {number} cost Minimum cost in dollars.
 * @property {(id: string) => string[]|null} tools The programs that a run called, or null if they are not known yet.
 */

import { firstLine, visible } from './format.js';

/**
 * @param {RunLine[]} runs
 * @param {Filter} filter
 * @param {number} [now]
 */
export function filterRuns(runs, filter, now = Date.now()) {
  return runs.filter((run) => {
    if (filter.status && run.status !== filter.status) return false;
    if (filter.agent && run.agent !== filter.agent) return false;
    if (filter.hours && now - run.created > filter.hours * 3_600_000) return false;
    if (filter.cost && (run.usage?.cost ?? 0) < filter.cost) return false;
    if (!filter.tool) return true;
    const tools = filter.tools(run.id);
    return tools === null || tools.some((name) => name.includes(filter.tool));
  });
}

/**
 * Returns the title of a session. Its first message counts while its first run has not ended.
 *
 * @param {{id: string, title: string}} session
 * @param {RunLine[]} runs The newest first.
 */
export function sessionTitle({ id, title }, runs) {
  return visible(title || firstLine(runs.findLast((run) => run.session_id === id)?.prompt ?? '', 80) || 'Untitled');
}

/** @type {Record<string, (run: RunLine) => number>} */
const KEYS = {
  created: (run) => run.created,
  duration: (run) => run.updated - run.created,
  steps: (run) => run.steps,
  tokens: (run) => (run.usage?.prompt ?? 0) + (run.usage?.completion ?? 0),
  cost: (run) => run.usage?.cost ?? 0,
};

/**
 * @param {RunLine[]} runs
 * @param {string} key
 * @param {string} order
 */
export function sortRuns(runs, key, order) {
  const value = KEYS[key] ?? ((/** @type {RunLine} */ run) => run.created);
  const sign = order === 'asc' ? 1 : -1;
  return [...runs].sort((a, b) => sign * (value(a) - value(b)) || b.created - a.created);
}

/**
 * Returns a list of runs, the newest first, with one that is new or changed.
 *
 * @param {RunLine[]} runs
 * @param {RunLine} run
 * @param {number} limit
 */
export function mergeRun(runs, run, limit) {
  if (runs.some((one) => one.id === run.id)) return runs.map((one) => (one.id === run.id && one.updated <= run.updated ? run : one));
  const at = runs.findIndex((one) => one.created < run.created);
  return at < 0 ? [...runs, run].slice(0, limit) : [...runs.slice(0, at), run, ...runs.slice(at)].slice(0, limit);
}
