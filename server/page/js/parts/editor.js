/**
 * The editor: a textarea under a highlighted overlay, so that input methods, undo and screen readers
 * work as the browser's own.
 *
 * @import {Diagnostic} from '../types.js'
 * @import {Entry} from '../completion.js'
 */

import { helpAt } from '../completion.js';
import { fill, h, setText } from '../dom.js';
import { visible } from '../format.js';
import { highlight } from '../highlight.js';
import { indentationAt, matchBrackets, tokenize } from '../tokens.js';
import { CompletionList } from './completion-list.js';
import { markLayer, offsetOf } from './editor-marks.js';

const LINE = 21;
const PADDING = 10;

export class Editor {
  /** @param {{onChange: (source: string) => void, onRun: () => void}} actions */
  constructor(actions) {
    this.actions = actions;
    /** @type {Diagnostic[]} */
    this.diagnostics = [];
    /** @type {Entry[]} */
    this.functions = [];
    /** @type {Entry[]} */
    this.programs = [];
    this.mayLeave = false;
    this.field = h('textarea', {
      class: 'code', wrap: 'off', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', autocorrect: 'off', 'aria-label': 'Program',
      'aria-describedby': 'editor-help', oninput: () => this.onInput(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      onblur: () => this.completion.close(), onmousemove: (/** @type {MouseEvent} */ event) => this.onHover(event), onmouseleave: () => this.drawHelp(),
      onclick: () => this.onCaret(), onkeyup: (/** @type {KeyboardEvent} */ event) => { if (/^(Arrow|Home|End|Page)/.test(event.key)) this.onCaret(); },
    });
    this.gutter = h('pre', { class: 'gutter', 'aria-hidden': 'true' });
    this.overlay = h('pre', { class: 'layer', 'aria-hidden': 'true' });
    this.marks = h('pre', { class: 'layer marks', 'aria-hidden': 'true' });
    this.stack = h('div', { class: 'editor-stack' }, this.overlay, this.marks, this.field);
    this.completion = new CompletionList(this);
    this.scroller = h('div', { class: 'editor-scroll' }, this.gutter, this.stack);
    this.help = h('p', { class: 'editor-help', id: 'editor-help' });
    this.element = h('div', { class: 'editor' }, this.scroller, this.help, this.completion.element);
    this.draw();
  }

  get value() {
    return this.field.value;
  }

  /** @param {string} source */
  setValue(source) {
    this.field.value = source;
    this.diagnostics = [];
    this.draw();
    this.actions.onChange(source);
  }

  /**
   * Replaces the whole text in a way that the browser can undo.
   *
   * @param {string} source
   */
  replaceAll(source) {
    this.field.focus();
    this.field.select();
    this.insert(source);
  }

  /** @param {Diagnostic[]} diagnostics */
  setDiagnostics(diagnostics) {
    this.diagnostics = diagnostics;
    this.field.setAttribute('aria-invalid', String(diagnostics.some((one) => one.severity === 'error')));
    this.drawMarks();
    this.drawGutter();
    this.drawHelp();
  }

  /** @param {Diagnostic} diagnostic */
  goTo(diagnostic) {
    const at = offsetOf(this.value, diagnostic.line, diagnostic.column);
    this.field.focus();
    this.field.setSelectionRange(at, offsetOf(this.value, diagnostic.end_line, diagnostic.end_column));
    this.scroller.scrollTop = Math.max(0, (diagnostic.line - 5) * LINE);
    this.onCaret();
  }

  onInput() {
    this.draw();
    this.actions.onChange(this.value);
    this.completion.update(false);
  }

  onCaret() {
    this.drawMarks();
    this.drawHelp();
    this.completion.close();
  }

  draw() {
    fill(this.overlay, highlight(this.value), '\n');
    this.drawMarks();
    this.drawGutter();
    this.drawHelp();
  }

  drawGutter() {
    const lines = this.value.split('\n').length;
    const wrong = new Map(this.diagnostics.map((one) => [one.line, one.severity]));
    const key = `${lines} ${[...wrong].join()}`;
    if (this.gutter.dataset.key === key) return;
    this.gutter.dataset.key = key;
    fill(this.gutter, Array.from({ length: lines }, (_, i) => h('span', { class: wrong.get(i + 1) ?? null }, `${i + 1}\n`)));
  }

  drawMarks() {
    const caret = this.field.selectionStart;
    const brackets = this.field.selectionEnd === caret ? matchBrackets(tokenize(this.value), caret) : null;
    fill(this.marks, markLayer(this.value, this.diagnostics, brackets, caret), '\n');
  }

  drawHelp(at = this.field.selectionStart, isExact = false) {
    const found = this.diagnostics.find((one) => offsetOf(this.value, one.line, one.column) <= at && at <= offsetOf(this.value, one.end_line, one.end_column));
    this.help.classList.toggle('error', found?.severity === 'error');
    if (found) {
      setText(this.help, visible(`${found.message}${found.hint ? `. Hint: ${found.hint}` : ''}`));
      return;
    }
    const help = helpAt(this.value, at, this.functions, isExact);
    if (help) setText(this.help, `${help.signature}  –  ${help.sentence}`);
    else if (!isExact) setText(this.help, 'Ctrl Enter runs, Ctrl Space completes, Esc then Tab leaves the editor.');
  }

  /** @param {MouseEvent} event */
  onHover(event) {
    const box = this.field.getBoundingClientRect();
    const width = this.characterWidth();
    const line = Math.floor((event.clientY - box.top - PADDING) / LINE) + 1;
    const column = Math.floor((event.clientX - box.left - PADDING) / width) + 1;
    const text = this.value.split('\n')[line - 1];
    if (text === undefined || column > text.length) this.drawHelp();
    else this.drawHelp(offsetOf(this.value, line, Math.max(1, column)), true);
  }

  characterWidth() {
    const probe = h('span', null, '0000000000');
    this.marks.append(probe);
    const width = probe.getBoundingClientRect().width / 10;
    probe.remove();
    return width || 8;
  }

  /** @param {string} text */
  insert(text) {
    // The only way to insert text that the browser's undo knows.
    if (!document.execCommand('insertText', false, text)) {
      this.field.setRangeText(text, this.field.selectionStart, this.field.selectionEnd, 'end');
      this.onInput();
    }
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.isComposing) return;
    if (this.completion.onKey(event)) {
      event.preventDefault();
      return;
    }
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key === 'Enter') this.actions.onRun();
    else if (isCommand && event.key === ' ') this.completion.update(true);
    else if (event.key === 'Enter' && !isCommand && !event.altKey) this.insert(`\n${indentationAt(this.value, this.field.selectionStart)}`);
    else if (event.key === 'Tab' && !this.mayLeave) this.indent(event.shiftKey);
    else {
      if (event.key !== 'Shift') this.mayLeave = event.key === 'Escape';
      return;
    }
    event.preventDefault();
  }

  /** @param {boolean} isBack */
  indent(isBack) {
    const { selectionStart: start, selectionEnd: end } = this.field;
    if (start === end && !isBack) {
      this.insert('  ');
      return;
    }
    const from = this.value.lastIndexOf('\n', start - 1) + 1;
    const lines = this.value.slice(from, end).split('\n');
    const changed = lines.map((line) => (isBack ? line.replace(/^ {1,2}/, '') : `  ${line}`)).join('\n');
    this.field.setSelectionRange(from, end);
    this.insert(changed);
    if (start !== end) this.field.setSelectionRange(from, from + changed.length);
  }
}
