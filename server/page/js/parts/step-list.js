/**
 * The steps of a run as lines in a chat: one line for each program, with the start of its output.
 *
 * @import {StepState} from '../run-state.js'
 * @import {RunFeed} from '../run-feed.js'
 */

import { h, prose } from '../dom.js';
import { count, duration, firstLine, visible } from '../format.js';
import { href } from '../router.js';
import { callOutcome, callTitle, outputPreview, repairText } from '../run-text.js';

/** More steps than this are shown in the view of the run only. */
const MAX_SHOWN = 60;

export class StepList {
  constructor() {
    this.list = h('ol', { class: 'step-list' });
    /** @type {Map<StepState, HTMLElement>} */
    this.items = new Map();
    this.more = h('li', { class: 'more', hidden: true });
    this.list.append(this.more);
  }

  /**
   * Draws the steps from an index on; earlier ones are unchanged.
   *
   * @param {RunFeed} feed
   * @param {number} from
   */
  update(feed, from) {
    const { steps } = feed.state.root;
    const first = Math.max(0, steps.length - MAX_SHOWN);
    for (const [step, item] of this.items) {
      if (steps.indexOf(step, Math.max(0, step.number - 2)) < first) {
        item.remove();
        this.items.delete(step);
      }
    }
    this.more.hidden = first === 0;
    if (first > 0) this.more.replaceChildren(h('a', { href: href('run', [feed.line.id]) }, `Show all ${count(steps.length, 'step')} in the run`));
    for (let i = Math.max(first, from); i < steps.length; i += 1) {
      const step = steps[i];
      if (!step) continue;
      const item = drawStep(feed, step);
      const old = this.items.get(step);
      if (old) old.replaceWith(item);
      else this.list.append(item);
      this.items.set(step, item);
    }
  }
}

/**
 * @param {RunFeed} feed
 * @param {StepState} step
 */
function drawStep(feed, step) {
  const address = (/** @type {(string|number)[]} */ ...path) => href('run', [feed.line.id, step.number, ...path]);
  const isEmpty = step.calls.length === 0 && (step.isAnswer || step.thinkEnd === null || step.error !== null) && step.attempts.length === 0;
  return h('li', { hidden: isEmpty },
    step.attempts.map((attempt, i) => [thought(attempt.thought), h('p', { class: 'thought bad', dir: 'auto' }, `Attempt ${i + 1} failed: `, prose(firstLine(attempt.error)))]),
    thought(step.thought),
    step.calls.map((call) => {
      const outcome = callOutcome(call);
      const repaired = repairText(step);
      return h('a', { class: `call ${outcome}`, href: address(call.number) },
        h('span', { class: `status ${outcome === 'waiting' ? 'parked' : outcome}` }, h('span', { class: 'visually-hidden' }, outcome)),
        h('span', { class: 'number' }, String(step.number)),
        h('code', { class: 'ellipsis' }, callTitle(call)),
        repaired ? h('span', { class: 'badge' }, repaired) : null,
        h('span', { class: 'time' }, call.durMs === null ? '' : duration(call.durMs)),
        call.output ? h('span', { class: 'output ellipsis mono' }, outputPreview(call)) : null);
    }));
}

/** @param {string} text */
function thought(text) {
  return text ? h('p', { class: 'thought ellipsis', dir: 'auto', title: visible(text) }, visible(firstLine(text))) : null;
}
