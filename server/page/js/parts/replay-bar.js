/**
 * The bar that steps through a run: each moment is a thought, a program, or a result.
 *
 * @import {Row} from '../run-rows.js'
 * @import {TabId} from './inspector.js'
 *
 * @typedef {{row: Row, tab: TabId}} Moment
 */

import { fill, h, setText } from '../dom.js';
import { number } from '../format.js';
import { icon } from './icon.js';
import { announce, busy, notify } from './notify.js';

const PLAY_MS = 1200;

export class ReplayBar {
  /**
   * @param {{onMove: (row: Row, tab: TabId) => void, onClose: () => void,
   *   check: () => Promise<{same: boolean, difference: string}>}} actions
   */
  constructor(actions) {
    this.actions = actions;
    /** @type {Moment[]} */
    this.moments = [];
    this.at = 0;
    this.isOpen = false;
    /** @type {ReturnType<typeof setInterval>|undefined} */
    this.timer = undefined;
    this.text = h('span', { class: 'nowrap' });
    this.slider = h('input', { type: 'range', min: '0', value: '0', 'aria-label': 'Moment of the run', oninput: () => this.go(Number(this.slider.value)) });
    this.playButton = h('button', { class: 'icon-only', 'aria-label': 'Play', onclick: () => this.togglePlay() }, icon('play'));
    this.element = h('div', { class: 'replay-bar', role: 'toolbar', 'aria-label': 'Replay', hidden: true },
      h('button', { class: 'icon-only', 'aria-label': 'Previous moment', title: 'Previous (←)', onclick: () => this.go(this.at - 1) }, icon('previous')),
      this.playButton,
      h('button', { class: 'icon-only', 'aria-label': 'Next moment', title: 'Next (→)', onclick: () => this.go(this.at + 1) }, icon('next')),
      this.slider, this.text,
      h('button', { class: 'tiny', title: 'Run the programs again with the recorded results, and compare', onclick: (/** @type {MouseEvent} */ event) => this.check(event) }, 'Verify'),
      h('button', { class: 'plain icon-only', 'aria-label': 'End the replay', title: 'End the replay (Esc)', onclick: () => actions.onClose() }, icon('close')));
  }

  /** @param {Row[]} rows */
  start(rows) {
    this.moments = rows.flatMap((row) => (row.call
      ? [{ row, tab: /** @type {TabId} */ ('program') }, { row, tab: /** @type {TabId} */ ('result') }]
      : [{ row, tab: /** @type {TabId} */ (row.step.isAnswer ? 'result' : 'thought') }]));
    if (this.moments.length === 0) return;
    this.isOpen = true;
    this.element.hidden = false;
    this.slider.max = String(this.moments.length - 1);
    this.go(0);
  }

  stop() {
    this.isOpen = false;
    this.element.hidden = true;
    this.pause();
  }

  /** @param {number} index */
  go(index) {
    const moment = this.moments[index];
    if (!moment) {
      this.pause();
      return;
    }
    this.at = index;
    this.slider.value = String(index);
    const step = moment.row.step.number;
    this.slider.setAttribute('aria-valuetext', `Step ${step}, ${moment.tab}`);
    setText(this.text, `step ${number(step)} · ${moment.tab}`);
    this.actions.onMove(moment.row, moment.tab);
  }

  /** @param {Row} row */
  moveTo(row) {
    const index = this.moments.findIndex((moment) => moment.row.key === row.key);
    if (index >= 0) this.go(index);
  }

  togglePlay() {
    if (this.timer !== undefined) this.pause();
    else {
      if (this.at >= this.moments.length - 1) this.go(0);
      this.timer = setInterval(() => this.go(this.at + 1), PLAY_MS);
      this.drawPlay();
    }
  }

  pause() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.drawPlay();
  }

  drawPlay() {
    const isPlaying = this.timer !== undefined;
    fill(this.playButton, icon(isPlaying ? 'pause' : 'play'));
    this.playButton.setAttribute('aria-label', isPlaying ? 'Pause' : 'Play');
  }

  /** @param {MouseEvent} event */
  check(event) {
    void busy(/** @type {HTMLButtonElement} */ (event.currentTarget), async () => {
      const { same, difference } = await this.actions.check();
      const text = same ? 'The replay is identical to the run' : `The replay differs: ${difference || 'unknown'}`;
      notify(text, { isError: !same });
      announce(text);
    });
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} True if the key was for the replay.
   */
  onKey(event) {
    if (event.target === this.slider && event.key.startsWith('Arrow')) return false;
    if (event.key === 'ArrowRight') this.go(this.at + 1);
    else if (event.key === 'ArrowLeft') this.go(this.at - 1);
    else if (event.key === ' ' && !(event.target instanceof HTMLButtonElement)) this.togglePlay();
    else if (event.key === 'Escape') this.actions.onClose();
    else return false;
    return true;
  }
}
