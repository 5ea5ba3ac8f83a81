/**
 * One message of a chat and its run: the message, the steps, the answer as it is written.
 *
 * @import {Run, RunLine} from '../types.js'
 * @import {Artifact} from '../run-state.js'
 */

import { api } from '../app.js';
import { fill, h, setText } from '../dom.js';
import { isEnded } from '../events.js';
import { count, cost, duration, elapsed, number, visible } from '../format.js';
import { renderMarkdown } from '../markdown-dom.js';
import { href } from '../router.js';
import { RunFeed } from '../run-feed.js';
import { activity, callDraft, splitAttachments } from '../run-text.js';
import { approvalCard } from './approval-card.js';
import { artifactList } from './artifacts.js';
import { copyButton, endNotice, fileChips, releaseNotice, statusLabel, usageText } from './bits.js';
import { icon } from './icon.js';
import { act, announce } from './notify.js';
import { StepList } from './step-list.js';

export class Turn {
  /**
   * @param {RunLine} line
   * @param {AbortSignal} signal
   * @param {{onEdit: (line: RunLine) => void, onSend: (line: RunLine, prompt: string) => Promise<unknown>, onGrow: () => void, onLine: (line: RunLine) => void}} actions
   */
  constructor(line, signal, actions) {
    this.line = line;
    this.signal = signal;
    this.actions = actions;
    this.steps = new StepList();
    this.facts = h('span', { class: 'facts' });
    this.status = h('span', { class: 'live-status' });
    this.details = h('details', { class: 'steps', ontoggle: () => { if (this.details.open) this.follow(); } },
      h('summary', null, h('span', { class: 'chevron' }, icon('right')), this.status, this.facts), this.steps.list);
    this.draft = h('div', { class: 'draft markdown', hidden: true });
    this.call = h('pre', { class: 'draft-call', hidden: true, 'aria-label': 'Program that the model writes' });
    this.answer = h('div', { class: 'answer markdown' });
    /** Why the run ended without an answer. */
    this.end = h('div', { hidden: true });
    this.waiting = h('div', { class: 'stack' });
    this.artifacts = h('div', { hidden: true });
    this.footer = h('div', { class: 'turn-actions' });
    const { text, names } = splitAttachments(line.prompt);
    this.element = h('article', { class: 'turn', 'aria-label': `Message: ${visible(text).slice(0, 80)}` },
      h('div', { class: 'ask' }, h('div', { class: 'bubble', dir: 'auto' }, visible(text)), line.session_id ? fileChips(names, href('sessions', [line.session_id])) : null),
      h('div', { class: 'reply' }, this.details, this.draft, this.call, this.waiting, this.answer, this.end, this.artifacts, this.footer));
    /** @type {RunFeed|null} */
    this.feed = null;
    this.asked = '';
    /** Draws the elapsed time while the run is active. */
    this.clock = setInterval(() => this.drawFacts(), 1000);
    signal.addEventListener('abort', () => clearInterval(this.clock));
    this.drawLine();
    if (!isEnded(line.status)) {
      this.details.open = true;
      this.follow();
    } else if (line.steps > 0 && !('artifacts' in line)) {
      this.loadWhenSeen();
    }
  }

  /** Reads what the programs left, which lists of runs do not have, once the message is in view. */
  loadWhenSeen() {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      // Without it, the link to the run still leads to the artifacts.
      api.run(this.line.id, this.signal).then((run) => this.setLine(run), () => {});
    });
    observer.observe(this.element);
    this.signal.addEventListener('abort', () => observer.disconnect());
  }

  follow() {
    if (this.feed) return;
    this.feed = new RunFeed(api, this.line, this.signal, {
      onChange: (from) => this.drawState(from),
      onLine: (line) => {
        const wasRunning = !isEnded(this.line.status);
        this.line = line;
        this.drawLine();
        if (wasRunning && isEnded(line.status)) announce(line.status === 'done' ? 'The answer is complete' : `The run is ${line.status}`);
        this.actions.onLine(line);
        this.actions.onGrow();
      },
    });
    this.feed.start();
  }

  /** @param {RunLine} line */
  setLine(line) {
    if (this.feed) this.feed.setLine(line);
    else if (line.updated > this.line.updated || line.status !== this.line.status || ('artifacts' in line && !('artifacts' in this.line))) {
      this.line = line;
      this.drawLine();
    }
  }

  /** @param {number} from */
  drawState(from) {
    const { feed } = this;
    if (!feed) return;
    this.steps.update(feed, from);
    const step = feed.state.root.steps.at(-1);
    const isOpen = step !== undefined && !feed.state.root.isEnded;
    const written = isOpen ? step.written : '';
    const call = isOpen && written === '' ? callDraft(step.draft) : '';
    this.draft.hidden = written.trim() === '';
    if (!this.draft.hidden) renderMarkdown(this.draft, written);
    this.call.hidden = call === '';
    if (call) setText(this.call, visible(call.slice(-600)));
    if (feed.state.answer !== null) this.drawAnswer(feed.state.answer);
    this.drawArtifacts([...feed.state.artifacts.values()]);
    this.drawStatus();
    this.actions.onGrow();
  }

  drawStatus() {
    const isActive = !isEnded(this.line.status);
    const text = isActive && this.feed && this.line.status === 'running' ? activity(this.feed.state) : '';
    if (text) {
      if (this.status.textContent !== text) fill(this.status, h('span', { class: 'status running' }, text));
    } else {
      fill(this.status, statusLabel(this.line));
    }
  }

  drawLine() {
    const { line } = this;
    this.drawStatus();
    this.drawFacts();
    if (isEnded(line.status)) this.drawAnswer(line.result ?? '');
    this.drawEnd();
    if ('artifacts' in line) this.drawArtifacts((/** @type {Run} */ (line).artifacts ?? []).map((one) => ({ run: line.id, ...one })));
    void this.drawWaiting();
    fill(this.footer,
      isEnded(line.status) && line.result ? copyButton(() => line.result ?? '', 'Answer', 'Copy') : null,
      line.status === 'queued' ? h('button', { class: 'plain tiny', onclick: act(() => api.cancel(line.id)) }, icon('close'), 'Cancel') : null,
      h('button', { class: 'plain tiny', onclick: () => this.actions.onEdit(line), title: 'Edit the message in a fork of the session' }, icon('edit'), 'Edit'),
      h('a', { class: 'button plain tiny', href: href('run', [line.id]) }, icon('runs'), 'Open run'));
  }

  drawFacts() {
    const { line } = this;
    const hasEnded = isEnded(line.status);
    if (hasEnded) clearInterval(this.clock);
    const time = hasEnded ? duration(line.updated - line.created) : elapsed(Date.now() - line.created);
    const facts = [line.steps > 0 ? count(line.steps, 'step') : '', time, usageText(line.usage), cost(line.usage?.cost)].filter((text) => text !== '');
    if (this.facts.dataset.key === facts.join()) return;
    this.facts.dataset.key = facts.join();
    fill(this.facts, facts.map((text) => h('span', null, text)));
  }

  /** @param {string} text */
  drawAnswer(text) {
    const { status } = this.line;
    if (status !== 'failed' && status !== 'blocked' && status !== 'cancelled') renderMarkdown(this.answer, text);
    else fill(this.answer);
  }

  drawEnd() {
    const key = `${this.line.status} ${this.line.result}`;
    if (this.end.dataset.key === key) return;
    this.end.dataset.key = key;
    const end = endNotice(this.line, (prompt) => this.actions.onSend(this.line, prompt));
    this.end.hidden = end === null;
    fill(this.end, end);
  }

  /** @param {Artifact[]} artifacts */
  drawArtifacts(artifacts) {
    const key = JSON.stringify(artifacts);
    if (this.artifacts.dataset.key === key) return;
    this.artifacts.dataset.key = key;
    this.artifacts.hidden = artifacts.length === 0;
    fill(this.artifacts, artifactList(artifacts));
  }

  /** Shows the pending approvals of the run, each until it is answered. */
  async drawWaiting() {
    const { line } = this;
    if (line.status !== 'parked') {
      this.asked = '';
      fill(this.waiting);
      return;
    }
    /** @type {Run} */
    const run = 'waiting' in line ? /** @type {Run} */ (line) : await api.run(line.id, this.signal);
    const key = JSON.stringify([run.waiting, run.reason]);
    if (key === this.asked) return;
    this.asked = key;
    const cards = run.waiting.map((one) => approvalCard(run, one, (next) => this.setLine(next)));
    fill(this.waiting, cards.map((card) => card.element), releaseNotice(run.reason, async () => this.setLine(await api.release(run.id).then(() => api.run(run.id)))));
    for (const card of cards) if (this.feed) card.setState(this.feed.state);
    announce(`Approval needed: ${number(run.waiting.length)}`);
    this.actions.onGrow();
  }
}
