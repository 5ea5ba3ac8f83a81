/**
 * The header of a run: its message, its facts, and the actions.
 *
 * @import {RunFeed} from '../run-feed.js'
 */

import { fill, h, setText } from '../dom.js';
import { isEnded } from '../events.js';
import { cost, count, duration, short, visible } from '../format.js';
import { href } from '../router.js';
import { copy, idLabel, statusLabel, timeLabel } from './bits.js';
import { icon } from './icon.js';
import { announce } from './notify.js';

export class RunHeader {
  /**
   * @param {{onFollow: () => void, onCancel: (button: HTMLButtonElement) => void, onFork: () => void,
   *   onReplay: () => void}} actions
   */
  constructor(actions) {
    this.actions = actions;
    this.facts = h('div', { class: 'facts' });
    this.element = h('header', { class: 'bar run-bar' });
    this.followButton = h('button', { 'aria-pressed': 'false', title: 'Follow the newest step (f)', onclick: actions.onFollow }, 'Follow');
    this.drawn = '';
    this.status = '';
  }

  /** Shows the header of a run that is still loading. */
  reset() {
    this.drawn = '';
    this.status = '';
    this.facts.dataset.key = '';
    fill(this.element, h('h1', null, 'Run'));
  }

  /** @param {boolean} isFollowing */
  setFollowing(isFollowing) {
    this.followButton.setAttribute('aria-pressed', String(isFollowing));
  }

  /** @param {RunFeed} feed */
  draw(feed) {
    const run = feed.line;
    const isActive = !isEnded(run.status);
    if (this.status !== '' && this.status !== run.status) announce(`The run is ${run.status}`);
    this.status = run.status;
    const key = `${run.id} ${isActive}`;
    if (this.drawn !== key) {
      this.drawn = key;
      fill(this.element, h('h1', { class: 'ellipsis', dir: 'auto', title: visible(run.prompt) }, visible(run.prompt.split('\n', 1)[0] ?? '')), this.facts, this.buttons(isActive));
    }
    this.drawFacts(feed);
  }

  /** @param {boolean} isActive */
  buttons(isActive) {
    const { onCancel, onFork, onReplay } = this.actions;
    const cancel = h('button', { class: 'danger', onclick: () => onCancel(cancel) }, icon('stop'), 'Stop');
    return h('div', { class: 'actions' }, isActive ? [this.followButton, cancel] : null,
      h('button', { onclick: onFork, title: 'Start a new run from the selected step' }, icon('fork'), 'Fork here'),
      h('button', { onclick: onReplay, title: 'Step through the run (r)' }, icon('replay'), 'Replay'),
      h('button', { onclick: () => void copy(location.href, 'Link'), 'aria-label': 'Share link to the selected step', title: 'Copy a link to the selected step' }, icon('link'), h('span', { class: 'wide' }, 'Share link')));
  }

  /** @param {RunFeed} feed */
  drawFacts({ line, state }) {
    const key = `${line.id} ${line.status} ${line.stop}`;
    if (this.facts.dataset.key !== key) {
      this.facts.dataset.key = key;
      fill(this.facts, statusLabel(line), h('span', { class: 'numbers' }), h('span', { class: 'optional' }, `agent ${visible(line.agent)}`), h('span', { class: 'mono optional' }, visible(line.model)),
        timeLabel(line.created), idLabel(line.id, 'Run id'), line.session_id ? h('a', { href: href('chat', [line.session_id]) }, 'Open chat') : null,
        line.forked ? h('a', { class: 'optional', href: href('run', line.forked) }, `forked after step ${line.forked[1]}`) : null);
    }
    const end = isEnded(line.status) ? Math.max(state.last, line.updated) : Date.now();
    const tokens = (line.usage?.prompt ?? 0) + (line.usage?.completion ?? 0);
    const steps = Math.max(line.steps, state.root.steps.filter((step) => step.calls.length > 0).length);
    const parts = [duration(end - line.created), count(steps, 'step'), tokens > 0 ? `${short(tokens)} tokens` : '', cost(line.usage?.cost)];
    const numbers = this.facts.querySelector('.numbers');
    if (numbers) setText(numbers, parts.filter((part) => part !== '').join(' · '));
  }
}
