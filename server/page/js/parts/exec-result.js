/**
 * The result of a program that was run from the catalog or the sandbox.
 *
 * @import {ExecResult} from '../types.js'
 */

import { h, prose } from '../dom.js';
import { duration, number, visible } from '../format.js';
import { copyButton } from './bits.js';

/** @param {ExecResult} result */
export function execResult(result) {
  const facts = [duration(result.dur_ms), result.fuel === null ? '' : `${number(result.fuel)} fuel`, result.exit_code === null ? '' : `exit code ${result.exit_code}`];
  return h('div', { class: 'stack' },
    h('p', { class: 'row wrap' }, h('span', { class: `status ${result.success ? 'done' : 'failed'}` }, result.success ? 'done' : 'failed'),
      h('span', { class: 'muted small' }, facts.filter((text) => text !== '').join(' · ')), h('span', { class: 'end' }, copyButton(() => result.output, 'Output', 'Copy'))),
    result.error ? h('pre', { class: 'notice bad' }, h('span', null, prose(result.error))) : null,
    result.output ? h('pre', { class: 'sunken output', tabindex: '0', role: 'region', 'aria-label': 'Output', dir: 'auto' }, visible(result.output))
      : result.error ? null : h('p', { class: 'muted' }, 'The program had no output. Write (out V) to output a value.'));
}
