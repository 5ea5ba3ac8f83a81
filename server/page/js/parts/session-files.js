/**
 * The files of a session: view, download, upload, delete, apply to the server's folder.
 *
 * @import {SessionFile} from '../types.js'
 */

import { errorText } from '../api.js';
import { api, live } from '../app.js';
import { fill, h } from '../dom.js';
import { bytes, count, visible } from '../format.js';
import { deleteButton, download, emptyState, notice, timeLabel } from './bits.js';
import { diffView } from './code-view.js';
import { confirmAction, openDialog } from './dialogs.js';
import { icon } from './icon.js';
import { act, notify, notifyError } from './notify.js';

const MAX_VIEW = 400_000;
const IMAGE = /\.(?:png|jpe?g|gif|webp|avif)$/i;

export class SessionFiles {
  /**
   * @param {string} session
   * @param {SessionFile[]} files
   */
  constructor(session, files) {
    this.session = session;
    this.files = files;
    this.list = h('div', { class: 'table-scroll' });
    this.result = h('div', { 'aria-live': 'polite' });
    this.applyButton = h('button', { class: 'tiny', hidden: true, onclick: act(() => this.apply()) }, icon('check'), 'Apply to folder');
    this.input = h('input', { type: 'file', multiple: true, hidden: true, tabindex: '-1', 'aria-label': 'Files to upload', onchange: () => void this.upload([...(this.input.files ?? [])]) });
    this.element = h('section', {
      class: 'card files', 'aria-labelledby': 'files-heading', ondragover: (/** @type {DragEvent} */ event) => event.preventDefault(),
      ondrop: (/** @type {DragEvent} */ event) => { event.preventDefault(); void this.upload([...(event.dataTransfer?.files ?? [])]); },
    }, h('header', null, h('h2', { id: 'files-heading' }, 'Files'), h('span', { class: 'end row' }, this.input, this.applyButton,
      h('button', { class: 'tiny', onclick: () => this.input.click() }, icon('upload'), 'Upload'),
      h('button', { class: 'tiny', onclick: act(async () => download(await api.filesTar(session), `session-${session}.tar`)) }, icon('download'), 'All as tar'))), this.result, this.list);
    this.draw();
  }

  draw() {
    this.applyButton.hidden = this.files.length === 0 || !live.settings?.applies;
    if (this.files.length === 0) {
      fill(this.list, emptyState('file', 'No files', h('p', null, 'Files that programs write, and those that you attach or drop here, belong to the session.')));
      return;
    }
    fill(this.list, h('table', null, h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Path'), h('th', { scope: 'col', class: 'align-end' }, 'Size'), h('th', { scope: 'col' }, 'Changed'), h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Actions')))),
      h('tbody', null, this.files.map((file) => this.row(file)))));
  }

  /** @param {SessionFile} file */
  row(file) {
    const name = visible(file.path);
    return h('tr', null,
      h('td', null, file.deleted ? h('span', { class: 'row' }, h('del', { class: 'mono' }, name), h('span', { class: 'badge bad' }, 'deleted'))
        : h('button', { class: 'link mono', onclick: act(() => this.view(file)) }, name),
      file.deleted ? null : [' ', h('span', { class: `badge ${file.created ? 'good' : 'attention'}` }, file.created ? 'new' : 'changed')]),
      h('td', { class: 'align-end nowrap' }, file.deleted ? '' : bytes(file.size)), h('td', { class: 'nowrap' }, timeLabel(file.modified)),
      h('td', { class: 'align-end nowrap' }, file.deleted ? null : [
        h('button', { class: 'plain tiny icon-only', 'aria-label': `Download ${name}`, title: 'Download', onclick: act(async () => download(await api.file(this.session, file.path), file.path.split('/').at(-1) ?? 'file')) }, icon('download')),
        deleteButton(`Delete ${name}`, () => void this.remove(file))]));
  }

  /** @param {SessionFile} file */
  async view(file) {
    const blob = await api.file(this.session, file.path);
    const name = visible(file.path);
    if (IMAGE.test(file.path)) {
      // A type of our own: what the server says about a foreign file does not matter.
      const address = URL.createObjectURL(new Blob([blob], { type: `image/${file.path.split('.').at(-1)?.toLowerCase().replace('jpg', 'jpeg')}` }));
      const dialog = openDialog(name, [h('img', { class: 'preview', src: address, alt: name })]);
      dialog.classList.add('large');
      dialog.addEventListener('close', () => URL.revokeObjectURL(address));
      return;
    }
    const text = await blob.slice(0, MAX_VIEW).text();
    const before = file.created || blob.size > MAX_VIEW ? '' : await (await api.file(this.session, file.path, { isBase: true })).slice(0, MAX_VIEW).text();
    const dialog = openDialog(name, [
      before && !text.includes('\u0000') ? diffView(before, text, `Changes of ${name}`)
        : text.includes('\u0000') ? h('p', { class: 'muted' }, `A binary file of ${bytes(blob.size)}. Download it to open it.`)
        : h('pre', { class: 'file-text', tabindex: '0', role: 'region', 'aria-label': name, dir: 'auto' }, visible(text)),
      blob.size > MAX_VIEW ? h('p', { class: 'muted' }, `Shown are the first ${bytes(MAX_VIEW)} of ${bytes(blob.size)}.`) : null,
    ], [h('button', { onclick: () => download(blob, file.path.split('/').at(-1) ?? 'file') }, icon('download'), 'Download')]);
    dialog.classList.add('large');
  }

  /** @param {File[]} files */
  async upload(files) {
    this.input.value = '';
    if (files.length === 0) return;
    try {
      for (const file of files) await api.putFile(this.session, file.name, file);
      notify(`${count(files.length, 'file')} uploaded`);
    } catch (error) {
      notifyError(error);
    }
    await this.reload();
  }

  /** @param {SessionFile} file */
  async remove(file) {
    if (!(await confirmAction('Delete the file', `${visible(file.path)} is deleted from the session.`, 'Delete'))) return;
    try {
      await api.deleteFile(this.session, file.path);
    } catch (error) {
      notify(errorText(error), { isError: true });
    }
    await this.reload();
  }

  async apply() {
    if (!(await confirmAction('Apply to folder', `${count(this.files.length, 'file')} of the session are written to the folder of the server, or deleted there. A file that somebody else has changed stays as it is.`, 'Apply'))) return;
    const { applied, left } = await api.applyFiles(this.session);
    fill(this.result, applied.length > 0 ? notice('good', `${count(applied.length, 'change')} applied to the folder of the server.`) : null,
      left.length > 0 ? notice('attention', `${count(left.length, 'change')} not applied:`, h('ul', null, left.map(({ path, reason }) => h('li', null, h('span', { class: 'mono' }, visible(path)), `: ${visible(reason)}`)))) : null);
    await this.reload();
  }

  async reload() {
    try {
      this.files = (await api.files(this.session)).files;
    } catch (error) {
      notifyError(error);
    }
    this.draw();
  }
}
