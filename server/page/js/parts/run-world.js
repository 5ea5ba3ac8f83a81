/**
 * The world of a program in the sandbox: its arguments, and the files of a session or fixtures.
 *
 * @import {Program, SessionLine} from '../types.js'
 */

import { live } from '../app.js';
import { fill, h } from '../dom.js';
import { firstLine, visible } from '../format.js';
import { sessionTitle } from '../runs-list.js';

/** @typedef {{args: string[], session_id?: string, fixtures?: Record<string, unknown>}} World */

const KEPT = 'wattle.sandbox.fixtures';
const KEPT_ARGS = 'wattle.sandbox.args';
/** The value of the choice, which no session has as its id. */
const FIXTURES = '#fixtures';
const SAMPLE = `{
  "files": { "notes.txt": "one\\ntwo\\n" },
  "kv": { "count": "3" },
  "http": [{ "url": "https://example.org/", "body": "a page" }],
  "ai": ["the answer to the first question"]
}`;

/**
 * Returns the newest sessions as options of a choice of files.
 *
 * @param {SessionLine[]} sessions
 */
export function sessionOptions(sessions) {
  return sessions.slice(0, 30).map((one) => h('option', { value: one.id }, `Session: ${sessionTitle(one, live.runs).slice(0, 60)}`));
}

export class RunWorld {
  constructor() {
    this.args = h('textarea', { id: 'sandbox-args', rows: '2', class: 'code', placeholder: 'one argument a line', value: localStorage.getItem(KEPT_ARGS) ?? '', oninput: () => localStorage.setItem(KEPT_ARGS, this.args.value) });
    this.choice = h('select', { id: 'sandbox-world', onchange: () => this.drawChoice() });
    this.fixtures = h('textarea', {
      id: 'sandbox-fixtures', rows: '9', class: 'code', spellcheck: 'false', value: localStorage.getItem(KEPT) ?? SAMPLE, 'aria-describedby': 'sandbox-fixtures-note',
      oninput: () => { localStorage.setItem(KEPT, this.fixtures.value); this.check(); },
    });
    this.error = h('span', { class: 'error', role: 'alert', hidden: true });
    this.field = h('div', { class: 'field', hidden: true }, h('label', { for: 'sandbox-fixtures' }, 'Fixtures'), this.fixtures,
      h('span', { class: 'note', id: 'sandbox-fixtures-note' }, 'All that the program sees: files, kv, memory, http, now, random, ai, shell. It reaches nothing outside.'), this.error);
    this.examples = h('div', { class: 'row wrap', hidden: true });
    this.elements = [
      h('div', { class: 'field' }, h('label', { for: 'sandbox-args' }, 'Arguments'), this.args),
      h('div', { class: 'field' }, h('label', { for: 'sandbox-world' }, 'Files'), this.choice), this.field, this.examples,
    ];
    this.drawSessions([]);
  }

  /** @param {(string|number|boolean)[]} args */
  setArgs(args) {
    this.args.value = args.join('\n');
    localStorage.setItem(KEPT_ARGS, this.args.value);
  }

  /** @param {SessionLine[]} sessions */
  drawSessions(sessions) {
    const options = sessionOptions(sessions);
    const key = options.map((one) => one.value + one.text).join();
    if (this.choice.dataset.key === key && this.choice.options.length > 0) return;
    this.choice.dataset.key = key;
    const selected = this.choice.value;
    fill(this.choice, h('option', { value: '' }, 'The working folder'), h('option', { value: FIXTURES }, 'Fixtures'), options);
    this.choice.value = [...this.choice.options].some((option) => option.value === selected) ? selected : '';
    this.drawChoice();
  }

  /** Offers the examples of a program, each with its fixtures. @param {Program} program */
  drawExamples(program) {
    const examples = (program.examples ?? []).slice(0, 8);
    this.examples.hidden = examples.length === 0;
    fill(this.examples, h('span', { class: 'muted small' }, 'Examples'), examples.map((example) => h('button', {
      class: 'tiny example', type: 'button', onclick: () => {
        this.setArgs(example.args);
        this.fixtures.value = JSON.stringify(example.fixtures ?? {}, null, 2);
        this.choice.value = FIXTURES;
        this.drawChoice();
      },
    }, h('span', { class: 'ellipsis mono' }, visible(`(${example.args.map((arg) => firstLine(String(arg), 24)).join(', ')})`)))));
  }

  drawChoice() {
    this.field.hidden = this.choice.value !== FIXTURES;
    this.check();
  }

  /** Returns the fixtures, or null if they are not a JSON object. */
  check() {
    let parsed = null;
    try {
      parsed = JSON.parse(this.fixtures.value.trim() || '{}');
    } catch { /* said below */ }
    const isObject = parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed);
    this.error.hidden = isObject;
    this.error.textContent = isObject ? '' : 'Fixtures are a JSON object.';
    this.fixtures.setAttribute('aria-invalid', String(!isObject));
    return isObject ? parsed : null;
  }

  /** Returns the world, or null after the field that is wrong has the focus. @returns {World|null} */
  value() {
    const args = this.args.value === '' ? [] : this.args.value.replace(/\n$/, '').split('\n');
    if (this.choice.value !== FIXTURES) return { args, ...(this.choice.value ? { session_id: this.choice.value } : {}) };
    const fixtures = this.check();
    if (fixtures === null) this.fixtures.focus();
    return fixtures === null ? null : { args, fixtures };
  }
}
