/**
 * Artifacts, which programs of a run left for the application: the name and the size, and a button
 * that fetches the data with the token and saves it as a file.
 *
 * @import {Artifact} from '../run-state.js'
 */

import { api } from '../app.js';
import { h } from '../dom.js';
import { bytes, visible } from '../format.js';
import { download } from './bits.js';
import { icon } from './icon.js';
import { act } from './notify.js';

/**
 * @param {Artifact} artifact
 * @param {{isInRow?: boolean}} [options] In a row of the waterfall, the keyboard reaches the button of the inspector instead.
 */
export function artifactButton(artifact, { isInRow = false } = {}) {
  const name = visible(artifact.name);
  return h('button', {
    class: `tiny${isInRow ? ' plain icon-only' : ''}`, type: 'button', title: `Save ${name}`, 'aria-label': `Save ${name}`, tabindex: isInRow ? '-1' : null,
    onclick: act(async () => download(await api.artifact(artifact.run, artifact.name), fileName(artifact.name))),
  }, icon('download'), isInRow ? null : 'Save');
}

/** @param {Artifact[]} artifacts */
export function artifactList(artifacts) {
  if (artifacts.length === 0) return null;
  return h('ul', { class: 'artifacts', 'aria-label': 'Artifacts' }, artifacts.map((one) => h('li', null, icon('file'),
    h('span', { class: 'mono ellipsis', dir: 'auto', title: visible(one.name) }, visible(one.name)), h('span', { class: 'muted small nowrap' }, bytes(one.bytes)), artifactButton(one))));
}

/**
 * Returns a name that is safe for a file: a browser replaces the rest, but not in the same way everywhere.
 *
 * @param {string} name
 */
function fileName(name) {
  return visible(name.split(/[\\/]/).at(-1) ?? '').replace(/^\.+/, '') || 'artifact';
}
