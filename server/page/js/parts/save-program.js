/**
 * Saves the program of the sandbox in the server's catalog.
 */

import { ApiError } from '../api.js';
import { api } from '../app.js';
import { visible } from '../format.js';
import { navigate, href } from '../router.js';
import { askTexts, confirmAction } from './dialogs.js';
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
 * Saves a program, after a question if it replaces another version, and opens it in the catalog. Asks
 * for the name and the description of a program without front matter.
 *
 * @param {string} text
 * @param {(source: string) => void} onNamed Receives the program with its new front matter.
 */
export async function saveProgram(text, onNamed) {
  let source = text;
  if (nameOf(source) === '') {
    const answer = await askTexts('Save to catalog', [{ label: 'Name', pattern: '[a-z][a-z0-9_]*', note: 'Lower-case letters, digits and _' }, { label: 'What the program does, in one sentence' }], 'Save');
    if (answer === null) return;
    source = `${frontMatter(answer[0] ?? '', answer[1] ?? '', source)}${source}`;
    onNamed(source);
  }
  const name = nameOf(source);
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

/**
 * Returns front matter for a program, with an entry for each argument that it reads.
 *
 * @param {string} name
 * @param {string} description
 * @param {string} source
 */
function frontMatter(name, description, source) {
  const args = [...source.matchAll(/\(arg (\d)\)/g)].map((match) => Number(match[1]));
  const lines = [`name = ${JSON.stringify(name)}`, `description = ${JSON.stringify(description)}`];
  for (let i = 1; i <= Math.max(0, ...args.map((arg) => arg + 1)); i += 1) lines.push('[[args]]', `name = "arg${i}"`, 'type_hint = "string"', `description = "Argument ${i}"`);
  return `${lines.map((line) => `;;; ${line}\n`).join('')}\n`;
}
