/**
 * Brings answers of the API into one form: optional fields get their defaults, so that views need
 * not know which of them a server leaves out.
 *
 * @import {Check, Settings, Token} from './types.js'
 */

/**
 * @param {any} raw
 * @returns {Settings}
 */
export function toSettings(raw) {
  return {
    ...raw, models: raw.models ?? [raw.model], scopes: raw.scopes ?? (raw.scope ? [raw.scope] : []), settings: raw.settings ?? [],
    hasOneScope: raw.scopes === undefined,
  };
}

/**
 * @param {any} raw
 * @returns {Check}
 */
export function toCheck(raw) {
  return { ok: raw.ok, diagnostics: raw.diagnostics ?? [], authority: raw.authority ?? null, formatted: raw.formatted ?? undefined };
}

/**
 * @param {any} raw
 * @returns {Token}
 */
export function toToken(raw) {
  return { ...raw, scopes: raw.scopes ?? (raw.scope ? [raw.scope] : []) };
}

/**
 * Returns the difference that a replay found as text.
 *
 * @param {any} raw
 * @returns {{same: boolean, difference: string}}
 */
export function toReplay(raw) {
  const found = raw.difference;
  const difference = !found ? '' : typeof found === 'string' ? found : `step ${found.step}, ${found.what}: recorded ${found.was}, now ${found.is}`;
  return { same: raw.same, difference };
}
