/**
 * The inspector's tab with the requests of a step to the model: the messages, the answers, the tokens.
 *
 * @import {Row} from '../run-rows.js'
 * @import {RunFeed} from '../run-feed.js'
 * @import {ModelRequest} from '../types.js'
 */

import { errorText, isAbort } from '../api.js';
import { fill, h } from '../dom.js';
import { cost, count, firstLine, number, visible } from '../format.js';
import { cutText } from './inspector-tabs.js';
import { notice } from './bits.js';

/**
 * @param {HTMLElement} panel
 * @param {RunFeed} feed
 * @param {Row} row
 */
export function drawRequests(panel, feed, { step }) {
  const holder = h('div', { class: 'stack' }, h('p', { class: 'muted' }, 'Loading the requests…'));
  fill(panel, holder);
  const run = step.key.includes('/') ? step.key.split('/')[0] ?? '' : feed.line.id;
  feed.requests(run).then((requests) => {
    const shown = requestsOf(requests, step.number);
    fill(holder, shown.length === 0 ? h('p', { class: 'muted' }, 'No request of this step is recorded yet.') : shown.map((one, i) => drawRequest(one, shown.length > 1 ? `Request ${i + 1}` : '')));
  }, (error) => { if (!isAbort(error)) fill(holder, notice('bad', errorText(error))); });
}

/** @typedef {{messages: ModelRequest['messages'], same: number, answer: ModelRequest['answer']}} Whole A request with all its messages. */

/**
 * Returns the requests of a step, each with the messages that it has in common with the one before.
 *
 * @param {ModelRequest[]} requests
 * @param {number} step
 * @returns {Whole[]}
 */
function requestsOf(requests, step) {
  /** @type {ModelRequest['messages']} */
  let messages = [];
  return requests.flatMap(({ step: number, same, messages: added, answer }) => {
    messages = [...messages.slice(0, same), ...added];
    return number === step ? [{ messages, same, answer }] : [];
  });
}

/**
 * @param {Whole} request
 * @param {string} title
 */
function drawRequest({ messages, same, answer }, title) {
  const usage = answer?.usage;
  const cached = usage?.cached ? `, ${number(usage.cached)} of them from the cache (${Math.round(100 * usage.cached / Math.max(1, usage.prompt))} %)` : '';
  return h('section', { class: 'stack' }, title ? h('h3', null, title) : null,
    usage ? h('dl', { class: 'facts-list' }, h('dt', null, 'Sent'), h('dd', null, `${count(usage.prompt, 'token')}${cached}`), h('dt', null, 'Written'), h('dd', null, count(usage.completion, 'token')),
      usage.cost ? [h('dt', null, 'Cost'), h('dd', null, cost(usage.cost))] : null) : null,
    h('h3', null, count(messages.length, 'message')),
    same > 0 ? h('details', { class: 'message' }, h('summary', null, `${count(same, 'message')} as in the request before`), messages.slice(0, same).map((one) => drawMessage(one, false))) : null,
    messages.slice(same).map((one) => drawMessage(one, one.role !== 'system')),
    h('h3', null, 'Answer'),
    answer ? [answer.reasoning ? cutText(answer.reasoning, 'Reasoning') : null, answer.text ? cutText(answer.text, 'Text', 6000) : null, answer.calls.map(drawCall)] : h('p', { class: 'muted' }, 'The model has not answered this request.'));
}

/**
 * @param {ModelRequest['messages'][0]} message
 * @param {boolean} isOpen
 */
function drawMessage({ role, content, calls }, isOpen) {
  return h('details', { class: 'message', open: isOpen }, h('summary', null, h('b', null, role), ' ', h('span', { class: 'muted small' }, `${visible(firstLine(content, 60))} · ${count(content.length, 'character')}`)),
    content ? cutText(content, 'Text') : null, calls.map(drawCall));
}

/** @param {{name: string, arguments: string}} call */
function drawCall(call) {
  return cutText(call.arguments, `Call of ${visible(call.name)}`);
}
