/**
 * A card for a call that waits for a person: who asks, what is touched, and the lines that do it.
 *
 * @import {Run, Waiting} from '../types.js'
 * @import {RunState} from '../run-state.js'
 */

import { ApiError } from '../api.js';
import { api, live } from '../app.js';
import { fill, h, prose, uniqueId } from '../dom.js';
import { visible } from '../format.js';
import { href } from '../router.js';
import { codeView } from './code-view.js';
import { idLabel, timeLabel } from './bits.js';
import { icon } from './icon.js';
import { checkOnce } from './inspector-program.js';
import { announce, notify, notifyError } from './notify.js';

/**
 * @typedef {object} Card
 * @property {HTMLElement} element
 * @property {(approve: boolean, scope: 'once'|'session') => void} answer
 * @property {() => void} deny Asks for the reason, or denies if it is already open.
 * @property {(state: RunState) => void} setState Shows the program once its events are known.
 */

/**
 * @param {Run} run
 * @param {Waiting} waiting
 * @param {(run: Run) => void} onAnswered
 * @returns {Card}
 */
export function approvalCard(run, waiting, onAnswered) {
  const titleId = uniqueId('approval');
  const program = h('div', { class: 'program' });
  const touched = h('p', { class: 'small touched', hidden: true });
  const reason = h('input', { type: 'text', id: uniqueId('reason'), placeholder: 'The model reads it', maxlength: '2000' });
  const denial = h('form', { class: 'denial row wrap', hidden: true, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); answer(false, 'once'); } },
    h('div', { class: 'field grow' }, h('label', { for: reason.id }, 'Reason (optional)'), reason),
    h('button', { class: 'danger', type: 'submit' }, 'Deny the call'));
  const buttons = h('div', { class: 'row wrap' },
    h('button', { class: 'primary', onclick: () => answer(true, 'once') }, 'Approve once', key('y')),
    h('button', { onclick: () => answer(true, 'session') }, 'Approve for the session', key('s')),
    h('button', { class: 'danger', onclick: () => deny() }, 'Deny', key('n')));
  const element = h('article', { class: 'card approval', 'aria-labelledby': titleId, tabindex: '-1' },
    h('header', null, icon('approve'), h('span', null, 'Agent ', h('b', null, visible(run.agent)), ' asks'),
      h('span', { class: 'end row muted small' }, timeLabel(run.updated), idLabel(run.id, 'Run id'))),
    h('div', { class: 'body stack' },
      h('h2', { id: titleId, class: 'question', dir: 'auto' }, prose(waiting.question)),
      h('p', { class: 'muted small ellipsis', dir: 'auto' }, 'For: ', visible(run.prompt)),
      program, touched, buttons, denial,
      h('a', { class: 'small open-run', href: href('run', [run.id, ...waiting.call.split('.')]) }, 'Open the run')));

  let isAnswered = false;
  /**
   * @param {boolean} approve
   * @param {'once'|'session'} scope
   */
  async function answer(approve, scope) {
    if (isAnswered) return;
    isAnswered = true;
    for (const button of element.querySelectorAll('button')) button.disabled = true;
    try {
      const next = await answerWith(run.id, waiting.call, { approve, scope }, approve ? '' : reason.value.trim());
      const text = approve ? (scope === 'once' ? 'Approved once' : 'Approved for the session') : 'Denied';
      notify(text);
      announce(text);
      live.refresh();
      onAnswered(next);
    } catch (error) {
      isAnswered = false;
      for (const button of element.querySelectorAll('button')) button.disabled = false;
      notifyError(error);
      live.refresh();
    }
  }
  function deny() {
    if (!denial.hidden) {
      void answer(false, 'once');
      return;
    }
    denial.hidden = false;
    reason.focus();
  }
  return {
    element, answer, deny,
    setState(state) {
      const [step, call] = waiting.call.split('.').map(Number);
      const found = state.root.byNumber.get(step ?? 0)?.calls.find((one) => one.number === call);
      if (!found) return;
      if (found.body === null) fill(program, h('pre', { class: 'sunken' }, visible(`${found.label}(${found.args.map((arg) => JSON.stringify(arg)).join(', ')})`)));
      else showTouched(found.body, touched);
      if (found.body !== null) fill(program, codeView(found.body, { marked: linesOf(found.body, waiting.question), label: 'Program that asks' }));
    },
  };
}

/**
 * Answers with a reason; without it if the server does not take reasons.
 *
 * @param {string} id
 * @param {string} call
 * @param {{approve: boolean, scope: 'once'|'session'}} body
 * @param {string} reason
 */
async function answerWith(id, call, body, reason) {
  if (reason === '') return api.answer(id, call, body);
  try {
    return await api.answer(id, call, { ...body, reason });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 400 && error.status !== 422)) throw error;
    const run = await api.answer(id, call, body);
    notify('The server did not take the reason', { isError: true });
    return run;
  }
}

/**
 * Shows what the whole program may touch, as the server's check finds it.
 *
 * @param {string} body
 * @param {HTMLElement} element
 */
function showTouched(body, element) {
  void checkOnce(body).then((check) => {
    if (!check?.authority) return;
    const { functions: _functions, imports: _imports, unknown, ...touches } = check.authority;
    const parts = Object.entries({ ...touches, 'known only when it runs': unknown })
      .filter(([, names]) => names.length > 0).map(([label, names]) => `${label} ${names.join(', ')}`);
    element.hidden = parts.length === 0;
    element.textContent = visible(`The whole program touches: ${parts.join(' · ')}`);
  });
}

/** @param {string} name */
function key(name) {
  return h('kbd', { 'aria-hidden': 'true' }, name);
}

/**
 * Returns the lines, counted from 1, that contain the function which the question names.
 *
 * @param {string} body
 * @param {string} question
 */
function linesOf(body, question) {
  const name = /[a-z]+\.[a-z_]+/.exec(question)?.[0];
  if (!name) return [];
  return body.split('\n').flatMap((line, i) => (line.includes(name) ? [i + 1] : []));
}
