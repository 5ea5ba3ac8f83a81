/**
 * A test of a model: asks it for one word, and shows the time and the cost.
 *
 * @import {Settings} from '../types.js'
 */

import { api } from '../app.js';
import { fill, h } from '../dom.js';
import { isEnded } from '../events.js';
import { cost, duration, visible } from '../format.js';
import { notice, usageText } from './bits.js';
import { busy } from './notify.js';

const PROMPT = 'Say hello in one word.';
const TIMEOUT_MS = 60_000;

/** @param {Settings} settings */
export function modelTest(settings) {
  const models = settings.models.length > 0 ? settings.models : [settings.model];
  const model = h('select', { 'aria-label': 'Model' }, models.map((one) => h('option', { value: one, selected: one === settings.model }, visible(one))));
  const result = h('div', { 'aria-live': 'polite' });
  const button = h('button', { onclick: () => void busy(button, async () => {
    fill(result, h('p', { class: 'status running' }, 'asking'));
    try {
      fill(result, await ask(model.value));
    } catch (error) {
      fill(result);
      throw error;
    }
  }) }, 'Test');
  return h('section', { class: 'card', 'aria-label': 'Model test' }, h('header', null, h('h2', null, 'Model test')),
    h('div', { class: 'body stack' }, h('p', { class: 'muted' }, `Sends “${PROMPT}” to the model.`), h('div', { class: 'row' }, model, button), result));
}

/** @param {string} model */
async function ask(model) {
  const began = Date.now();
  const { id } = await api.startRun({ prompt: PROMPT, model, max_steps: 1 });
  while (Date.now() - began < TIMEOUT_MS) {
    const run = await api.run(id);
    if (isEnded(run.status)) {
      const isGood = run.status === 'done';
      const facts = [duration(run.updated - run.created), usageText(run.usage), cost(run.usage?.cost)].filter((text) => text !== '').join(' · ');
      return notice(isGood ? 'good' : 'bad', visible((run.result ?? '').slice(0, 400)), h('p', { class: 'small' }, facts));
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  await api.cancel(id);
  return notice('bad', 'The model did not answer within a minute.');
}
