/**
 * The catalog: a list of programs, and one program with a form made of its arguments.
 *
 * @import {Route} from '../router.js'
 * @import {Program} from '../types.js'
 */

import { errorText, isAbort } from '../api.js';
import { api } from '../app.js';
import { fill, h } from '../dom.js';
import { count, visible } from '../format.js';
import { emptyState, loadError, skeleton } from '../parts/bits.js';
import { codeView } from '../parts/code-view.js';
import { icon } from '../parts/icon.js';
import { programForm } from '../parts/program-form.js';
import { href, navigate } from '../router.js';
import { View } from '../view.js';

class CatalogView extends View {
  constructor() {
    super();
    /** @type {Program[]} */
    this.programs = [];
    this.name = '';
    this.search = h('input', { type: 'search', placeholder: 'Search programs', 'aria-label': 'Search programs', oninput: () => this.drawList() });
    this.family = h('select', { 'aria-label': 'Family', onchange: () => this.drawList() });
    this.summary = h('p', { class: 'muted small list-summary', role: 'status' });
    this.list = h('ul', { class: 'program-list', 'aria-label': 'Programs' }, skeleton(9));
    this.detail = h('div', { class: 'scroll detail', tabindex: '0', role: 'region', 'aria-label': 'Program' });
  }

  connectedCallback() {
    super.connectedCallback();
    this.append(h('header', { class: 'bar' }, h('h1', null, 'Catalog'), h('div', { class: 'actions' }, h('a', { class: 'button', href: href('sandbox', [], { new: '1' }) }, icon('plus'), 'New program'))),
      h('div', { class: 'split' }, h('div', { class: 'list-pane' }, h('div', { class: 'list-tools', role: 'search' }, this.search, this.family), this.summary, this.list), this.detail));
    void this.load();
  }

  async load() {
    try {
      this.programs = (await api.catalog()).programs;
    } catch (error) {
      if (!isAbort(error)) fill(this.list, h('li', null, loadError(error, () => void this.load())));
      return;
    }
    const families = [...new Set(this.programs.map((one) => one.family))].sort();
    fill(this.family, h('option', { value: '' }, 'All families'), families.map((one) => h('option', { value: one }, visible(one))));
    this.drawList();
  }

  /** @param {Route} route */
  open(route) {
    const name = route.path[0] ?? '';
    this.classList.toggle('has-detail', name !== '');
    this.setTitle(name || 'Catalog');
    if (name === this.name && this.detail.childElementCount > 0) return;
    this.name = name;
    this.drawList();
    if (name === '') fill(this.detail, emptyState('catalog', 'Select a program', h('p', null, 'Each has a form made of its arguments, its source, and examples that fill the form.')));
    else void this.loadProgram(name);
  }

  drawList() {
    if (this.programs.length === 0) return;
    const words = this.search.value.toLowerCase().split(/\s+/).filter((word) => word !== '');
    const shown = this.programs.filter((one) => (this.family.value === '' || one.family === this.family.value)
      && words.every((word) => `${one.name} ${one.description}`.toLowerCase().includes(word)));
    this.summary.textContent = count(shown.length, 'program');
    fill(this.list, shown.map((one) => h('li', null, h('a', { href: href('catalog', [one.name]), 'aria-current': one.name === this.name ? 'true' : null },
      h('code', null, visible(one.name)), one.origin && one.origin !== 'built in' && one.origin !== 'builtin' ? h('span', { class: 'badge' }, visible(one.origin)) : null, h('span', { class: 'muted small' }, visible(one.description))))));
    if (shown.length === 0) fill(this.list, h('li', { class: 'none muted' }, 'No program matches. Try another word, or write a new program.'));
    this.list.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }

  /** @param {string} name */
  async loadProgram(name) {
    fill(this.detail, h('div', { class: 'page' }, skeleton()));
    try {
      const program = await api.program(name);
      if (this.name === name) this.drawProgram(program);
    } catch (error) {
      if (this.name !== name) return;
      fill(this.detail, emptyState('catalog', 'The program could not be loaded', h('p', null, visible(errorText(error))), h('a', { class: 'button', href: href('catalog') }, 'Show all programs')));
    }
  }

  /** @param {Program} program */
  drawProgram(program) {
    const source = program.source ?? '';
    fill(this.detail, h('div', { class: 'page' },
      h('div', { class: 'stack' },
        h('button', { class: 'tiny back', onclick: () => navigate(href('catalog')) }, '← All programs'),
        h('h2', { class: 'program-name' }, visible(program.name)), h('p', null, visible(program.description)),
        h('ul', { class: 'tags' }, h('li', null, h('span', { class: 'badge' }, visible(program.family))), h('li', null, h('span', { class: 'badge' }, visible(program.origin))), program.uses.map((one) => h('li', null, h('code', null, visible(one)))))),
      programForm(program),
      h('section', { class: 'stack' }, h('div', { class: 'row' }, h('h2', null, 'Source'), h('a', { class: 'button tiny end', href: href('sandbox', [], { code: source, program: program.name }) }, icon('sandbox'), 'Open in sandbox')),
        source ? codeView(source, { label: 'Source' }) : h('p', { class: 'muted' }, 'The server has no source of this program.'))));
  }
}

customElements.define('w-catalog', CatalogView);
