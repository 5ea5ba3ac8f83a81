/**
 * A form made of a program's arguments, with its examples and its result.
 *
 * @import {Program, ProgramArg} from '../types.js'
 */

import { errorText } from '../api.js';
import { api, live } from '../app.js';
import { fill, h, prose, uniqueId } from '../dom.js';
import { firstLine, visible } from '../format.js';
import { execResult } from './exec-result.js';
import { icon } from './icon.js';
import { announce } from './notify.js';
import { sessionOptions } from './run-world.js';

/** @typedef {{arg: ProgramArg, element: HTMLElement, get: () => string, set: (value: string) => void, isValid: () => boolean}} Field */

/** @param {Program} program */
export function programForm(program) {
  const paths = h('datalist', { id: uniqueId('paths') });
  const fields = program.args.map((arg) => createField(arg, paths.id));
  const session = h('select', { id: uniqueId('session'), onchange: () => void loadPaths(session.value, paths) }, h('option', { value: '' }, 'The working folder'), sessionOptions(live.sessions));
  const result = h('div', { class: 'result', 'aria-live': 'polite' });
  const button = h('button', { class: 'primary', type: 'submit' }, icon('play'), 'Run');
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const wrong = fields.find((field) => !field.isValid());
    if (wrong) {
      /** @type {HTMLElement|null} */ (wrong.element.querySelector('input, textarea, select'))?.focus();
      return;
    }
    button.disabled = true;
    fill(result, h('p', { class: 'status running' }, 'running'));
    try {
      const outcome = await api.runProgram(program.name, { args: givenArgs(fields), ...(session.value ? { session_id: session.value } : {}) });
      fill(result, execResult(outcome));
      announce(outcome.success ? 'The program ended with a result' : 'The program failed');
    } catch (error) {
      fill(result, h('p', { class: 'notice bad', role: 'alert' }, h('span', null, prose(errorText(error)))));
    } finally {
      button.disabled = false;
    }
  };
  const examples = (program.examples ?? []).slice(0, 8);
  return h('form', { class: 'card program-form', novalidate: true, onsubmit: submit, 'aria-label': `Run ${program.name}` },
    h('div', { class: 'body stack' }, paths,
      fields.length === 0 ? h('p', { class: 'muted' }, 'The program takes no arguments.') : fields.map((field) => field.element),
      h('div', { class: 'field' }, h('label', { for: session.id }, 'Files'), session),
      examples.length > 0 ? h('div', { class: 'row wrap' }, h('span', { class: 'muted small' }, 'Examples'), examples.map((example) => h('button', {
        class: 'tiny example', type: 'button', title: example.output === undefined ? null : `Outputs ${visible(firstLine(example.output, 80))}`,
        onclick: () => fields.forEach((field, i) => field.set(String(example.args[i] ?? field.arg.default ?? ''))),
      }, h('span', { class: 'ellipsis mono' }, visible(`(${example.args.map((arg) => firstLine(String(arg), 24)).join(', ')})`))))) : null,
      h('div', { class: 'row' }, button), result));
}

/**
 * Returns the arguments without those at the end that are empty and optional.
 *
 * @param {Field[]} fields
 */
function givenArgs(fields) {
  const args = fields.map((field) => field.get());
  while (args.length > 0 && args.at(-1) === '' && !fields[args.length - 1]?.arg.required) args.pop();
  return args;
}

/**
 * @param {ProgramArg} arg
 * @param {string} paths
 * @returns {Field}
 */
function createField(arg, paths) {
  const id = uniqueId('arg');
  const value = arg.default === null || arg.default === undefined ? '' : String(arg.default);
  const common = { id, 'aria-describedby': `${id}-note`, required: arg.required, value, dir: 'auto' };
  const error = h('span', { class: 'error', role: 'alert', hidden: true });
  const control = arg.type === 'bool' ? h('select', common, ['', 'true', 'false'].map((one) => h('option', { value: one }, one || 'not given')))
    : isLong(arg) ? h('textarea', { ...common, rows: '3', class: 'code' })
      : h('input', { ...common, type: 'text', inputmode: arg.type === 'int' ? 'numeric' : arg.type === 'float' ? 'decimal' : arg.type === 'url' ? 'url' : null,
        list: arg.type === 'path' ? paths : null, autocomplete: 'off', spellcheck: 'false' });
  if (arg.type === 'bool') control.value = value;
  const check = () => {
    const problem = problemOf(arg, control.value);
    error.hidden = problem === '';
    error.textContent = problem;
    control.setAttribute('aria-invalid', String(problem !== ''));
    return problem === '';
  };
  control.addEventListener('change', check);
  return {
    arg, get: () => control.value, isValid: check,
    set: (next) => {
      control.value = next;
      check();
    },
    element: h('div', { class: 'field' },
      h('label', { for: id }, visible(arg.name), h('span', { class: 'note' }, ` ${visible(arg.type)}${arg.required ? '' : ', optional'}`)),
      control, h('span', { class: 'note', id: `${id}-note` }, visible(arg.description)), error),
  };
}

/** @param {ProgramArg} arg */
function isLong(arg) {
  return arg.type === 'text' || arg.type === 'json' || /^(?:text|content|body|json|csv|data|template)$/.test(arg.name);
}

/**
 * @param {ProgramArg} arg
 * @param {string} value
 */
function problemOf(arg, value) {
  if (value === '') return arg.required && arg.type !== 'string' && arg.type !== 'text' ? 'This argument is required.' : '';
  if (arg.type === 'int' && !/^[+-]?\d+$/.test(value.trim())) return 'An integer, such as 42.';
  if (arg.type === 'float' && !Number.isFinite(Number(value))) return 'A number, such as 2.5.';
  if (arg.type === 'url' && !/^https?:\/\//.test(value)) return 'An address that begins with http:// or https://.';
  return '';
}

/**
 * @param {string} session
 * @param {HTMLElement} paths
 */
async function loadPaths(session, paths) {
  fill(paths);
  if (session === '') return;
  try {
    const { files } = await api.files(session);
    fill(paths, files.filter((file) => !file.deleted).map((file) => h('option', { value: file.path })));
  } catch { /* the picker has no suggestions */ }
}
