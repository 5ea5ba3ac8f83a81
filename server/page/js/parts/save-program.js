/**
 * Saves the program of the sandbox in the server's catalog.
 */

import { ApiError } from '../api.js';
import { api } from '../app.js';
import { visible } from '../format.js';
import { navigate, href } from '../router.js';
import { confirmAction } from './dialogs.js';
import { notify, notifyError } from './notify.js';

/**
 * Returns the name in a program's front matter, or an empty text.
 *
 * @param {string} source
 */
export function nameOf(source) {
  return /^;;; *name *= *"([\w-]+)"/m.exec(source)?.[1] ?? '';
}

/**
 * Saves a program, after a question if it replaces another version, and opens it in the catalog.
 *
 * @param {string} source
 */
export async function saveProgram(source) {
  const name = nameOf(source);
  if (name === '') {
    notify('The program has no front matter with a name. “New program” in the catalog begins with one.', { isError: true });
    return;
  }
  try {
    try {
      await api.saveProgram(name, { source, replace: false });
    } catch (error) {
      const isKnown = error instanceof ApiError && error.code === 'conflict' && error.hint.includes('replace');
      if (!isKnown) throw error;
      if (!(await confirmAction('Replace the program', `The catalog has another version of ${visible(name)}.`, 'Replace'))) return;
      await api.saveProgram(name, { source, replace: true });
    }
    notify(`${name} is in the catalog`);
    navigate(href('catalog', [name]));
  } catch (error) {
    notifyError(error);
  }
}
