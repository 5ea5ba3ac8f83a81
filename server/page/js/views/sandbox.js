/**
 * The sandbox: an editor with diagnostics as one types, the program's authority beside it, a run
 * against the files of a session or fixtures, the program's examples, and its way into the catalog.
 *
 * @import {Route} from '../router.js'
 * @import {Check, ExampleResult, ExecResult} from '../types.js'
 */

import { errorText, isAbort } from '../api.js';
import { api, live } from '../app.js';
import { debounce, fill, h, prose } from '../dom.js';
import { count, visible } from '../format.js';
import { copy, download } from '../parts/bits.js';
import { Editor } from '../parts/editor.js';
import { execResult } from '../parts/exec-result.js';
import { icon } from '../parts/icon.js';
import { authorityList } from '../parts/inspector-tabs.js';
import { announce, notify } from '../parts/notify.js';
import { RunWorld } from '../parts/run-world.js';
import { nameOf, saveProgram } from '../parts/save-program.js';
import { href } from '../router.js';
import { View } from '../view.js';

const DRAFT = 'wattle.sandbox';
const CHECK_MS = 80;
/** The argument of the sample. */
const SAMPLE_TEXT = 'the fox and the dog and the cat';
const SAMPLE = `;; Counts the words of the first argument.
(let $count (map))
(each $word (str.words (arg 0))
  (map.incr $count $word 1))
(each $word $n $count
  (out (fmt "{} {}" $word $n)))
`;
const NEW_PROGRAM = `;;; name = "my_program"
;;; description = "What the program does, in one sentence"
;;; returns = "what it outputs"
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "What the argument is"
;;; [[example]]
;;; args = ["hello"]
;;; results = ["HELLO"]

(ret (str.upper (arg 0)))
`;

class SandboxView extends View {
  constructor() {
    super();
    this.editor = new Editor({ onChange: (source) => this.onChange(source), onRun: () => void this.run() });
    this.check = debounce(() => void this.checkNow(), CHECK_MS);
    this.checking = new AbortController();
    /** @type {Check|null} */
    this.latest = null;
    this.state = h('span', { class: 'badge', role: 'status' });
    this.problems = h('ul', { class: 'problems', 'aria-label': 'Problems' });
    this.authority = h('div', { class: 'body' }, h('p', { class: 'muted' }, 'Write a program to see what it touches.'));
    this.world = new RunWorld();
    this.result = h('div', { class: 'result', 'aria-live': 'polite' });
    this.runButton = h('button', { class: 'primary', onclick: () => void this.run(), title: 'Run (Ctrl Enter)' }, icon('play'), 'Run');
    this.formatButton = h('button', { disabled: true, onclick: () => { if (this.latest?.formatted !== undefined) this.editor.replaceAll(this.latest.formatted); } }, 'Format');
    this.testButton = h('button', { hidden: true, onclick: () => void this.test(), title: 'Run the examples in the front matter' }, icon('check'), 'Test');
    this.saveButton = h('button', { hidden: true, onclick: () => void saveProgram(this.editor.value, (source) => this.editor.replaceAll(source)), title: 'Save the program in the catalog of the server', 'aria-label': 'Save to catalog' }, icon('catalog'), h('span', { class: 'wide' }, 'Save to catalog'));
    this.code = '';
  }

  connectedCallback() {
    super.connectedCallback();
    this.setTitle('Sandbox');
    this.append(
      h('header', { class: 'bar' }, h('h1', null, 'Sandbox'), this.state, h('div', { class: 'actions' }, this.formatButton,
        this.saveButton,
        h('button', { onclick: () => this.download(), title: 'Download the program as a file', 'aria-label': 'Download' }, icon('download')),
        h('button', { onclick: () => void copy(new URL(href('sandbox', [], { code: this.editor.value }), location.href).href, 'Link'), title: 'Copy a link that contains the program' }, icon('link'), h('span', { class: 'wide' }, 'Share')),
        this.testButton, this.runButton)),
      h('div', { class: 'sandbox-body' },
        h('div', { class: 'sandbox-main' }, this.editor.element, this.problems),
        h('div', { class: 'sandbox-side' },
          h('section', { class: 'card', 'aria-labelledby': 'run-heading' }, h('header', null, h('h2', { id: 'run-heading' }, 'Run')),
            h('div', { class: 'body stack' }, this.world.elements, this.result)),
          h('section', { class: 'card', 'aria-labelledby': 'authority-heading' }, h('header', null, h('h2', { id: 'authority-heading' }, 'Authority')), this.authority))));
    this.listen(live, 'change', () => this.world.drawSessions(live.sessions));
    this.listen(live, 'settings', () => this.drawSave());
    this.world.drawSessions(live.sessions);
    this.drawSave();
    void this.loadNames();
    this.editor.field.focus({ preventScroll: true });
  }

  /** @param {Route} route */
  open(route) {
    const code = route.query.get('code');
    const source = code ?? (route.query.has('new') ? NEW_PROGRAM : localStorage.getItem(DRAFT) ?? SAMPLE);
    if (this.editor.value === '' || (code !== null && code !== this.code) || route.query.has('new')) {
      this.editor.setValue(source);
      // The programs that the page brings have the argument that they need.
      if (source === NEW_PROGRAM) this.world.setArgs(['hello']);
      else if (source === SAMPLE && this.world.args.value === '') this.world.setArgs([SAMPLE_TEXT]);
    }
    this.code = code ?? '';
    const program = route.query.get('program');
    // Without its examples, the sandbox still runs the program.
    if (program) api.program(program).then((found) => this.world.drawExamples(found), () => {});
  }

  async loadNames() {
    const [language, catalog] = await Promise.allSettled([api.language(), api.catalog()]);
    if (language.status === 'fulfilled') this.editor.functions = language.value.functions ?? [];
    if (catalog.status === 'fulfilled') this.editor.programs = catalog.value.programs.map((one) => ({ name: one.name, signature: '', sentence: visible(one.description) }));
  }

  /** Only an administrator may save programs in the catalog. */
  drawSave() {
    this.saveButton.hidden = !live.settings?.scopes.includes('admin');
  }

  /** @param {string} source */
  onChange(source) {
    localStorage.setItem(DRAFT, source);
    this.testButton.hidden = !/^;;; *\[\[example\]\]/m.test(source);
    this.check();
  }

  async checkNow() {
    this.checking.abort();
    this.checking = new AbortController();
    const source = this.editor.value;
    if (source.trim() === '') {
      this.showCheck(null);
      return;
    }
    try {
      const check = await api.check(source, AbortSignal.any([this.signal, this.checking.signal]));
      if (source === this.editor.value) this.showCheck(check);
    } catch (error) {
      if (isAbort(error)) return;
      this.state.className = 'badge';
      this.state.textContent = 'not checked';
    }
  }

  /** @param {Check|null} check */
  showCheck(check) {
    this.latest = check;
    this.formatButton.disabled = check?.formatted === undefined || check.formatted === this.editor.value;
    this.editor.setDiagnostics(check?.diagnostics ?? []);
    const errors = check?.diagnostics.filter((one) => one.severity === 'error').length ?? 0;
    const warnings = (check?.diagnostics.length ?? 0) - errors;
    this.state.className = `badge ${errors > 0 ? 'bad' : warnings > 0 ? 'attention' : check ? 'good' : ''}`;
    this.state.textContent = !check ? '' : errors > 0 ? count(errors, 'error') : warnings > 0 ? count(warnings, 'warning') : 'no errors';
    fill(this.problems, [...(check?.diagnostics ?? [])].sort((a, b) => a.line - b.line || a.column - b.column).map((one) => h('li', { class: one.severity },
      h('button', { class: 'plain tiny', onclick: () => this.editor.goTo(one), 'aria-label': `Go to line ${one.line}` }, `${one.line}:${one.column}`),
      h('span', { class: 'grow' }, h('span', { class: 'visually-hidden' }, `${one.severity}: `), prose(one.message), one.hint ? h('span', { class: 'muted' }, ' ', prose(one.hint)) : null),
      one.fix ? h('button', { class: 'tiny', onclick: () => { if (one.fix) this.editor.replaceAll(one.fix.text); } }, 'Apply the fix') : null)));
    fill(this.authority, check ? authorityList(check.authority) : h('p', { class: 'muted' }, 'Write a program to see what it touches.'));
  }

  async run() {
    const world = this.world.value();
    if (!world) return;
    await this.show(async () => {
      /** @type {ExecResult} */
      const result = await api.exec({ body: this.editor.value, ...world });
      announce(result.success ? 'The program ended with a result' : 'The program failed');
      return execResult(result);
    });
  }

  async test() {
    await this.show(async () => {
      const { examples } = await api.test(this.editor.value);
      const failed = examples.filter((one) => !one.passed).length;
      announce(failed === 0 ? 'All examples pass' : `${count(failed, 'example')} failed`);
      return h('ul', { class: 'examples-run stack', 'aria-label': 'Examples' }, examples.map(exampleResult));
    });
  }

  /**
   * Shows the result of an action, or its error.
   *
   * @param {() => Promise<HTMLElement>} action
   */
  async show(action) {
    if (this.runButton.disabled) return;
    this.runButton.disabled = this.testButton.disabled = true;
    fill(this.result, h('p', { class: 'status running' }, 'running'));
    try {
      fill(this.result, await action());
    } catch (error) {
      fill(this.result, h('p', { class: 'notice bad', role: 'alert' }, h('span', null, prose(errorText(error)))));
    } finally {
      this.runButton.disabled = this.testButton.disabled = false;
    }
  }

  download() {
    const name = nameOf(this.editor.value) || 'program';
    download(new Blob([this.editor.value], { type: 'text/plain' }), `${name}.wat`);
    notify(`Saved as ${name}.wat`);
  }
}

/** @param {ExampleResult} example */
function exampleResult({ line, passed, differences }) {
  return h('li', null, h('span', { class: `status ${passed ? 'done' : 'failed'}` }, `line ${line}: ${passed ? 'passed' : 'failed'}`),
    differences.map((text) => h('pre', { class: 'notice bad' }, visible(text))));
}

customElements.define('w-sandbox', SandboxView);
