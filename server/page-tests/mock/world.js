// The state of the mock server: sessions, runs with their events, and the catalog.
import { EventEmitter } from 'node:events';
import { PARTS, scriptFor } from './scripts.js';

const SALES_CSV = 'day,region,units\n2026-03-01,north,12\n2026-03-01,east,20\n2026-03-02,south,9\n';
let ids = 0;

export class World {
  constructor() {
    this.runs = new Map();
    /** Emits `run` for each run that is new or changed. */
    this.bus = new EventEmitter().setMaxListeners(100);
    this.sessions = new Map();
    this.tokens = [{ name: 'laptop', scopes: ['read', 'run', 'admin'] }, { name: 'ci', scopes: ['read'] }];
    this.integrations = [{ name: 'support-bot', system_prompt: 'Answer politely.', agent: 'default' }];
    this.vars = new Map([['region', 'north']]);
    this.memory = [{ id: 1, text: 'The quarter ends in March.', created: Date.now() - 3_600_000 }];
    this.agents = [{ name: 'default', title: '', description: 'The agent of the server.', version: '', delegates: [] }, { name: 'clerk', title: 'Clerk', description: 'Answers questions about orders.', version: '1.2', delegates: ['researcher'] }];
    /** Why runs cannot ask a model. */
    this.modelProblem = null;
    /** Programs that were saved, by name. */
    this.saved = new Map();
  }

  session(id) {
    let session = this.sessions.get(id);
    if (!session) {
      const now = Date.now();
      session = { id, title: '', messages: [], made: now, used: now, files: new Map() };
      this.sessions.set(id, session);
    }
    return session;
  }

  newId() {
    ids += 1;
    return `01JZW${String(ids).padStart(4, '0')}${Math.random().toString(36).slice(2, 12).toUpperCase().padEnd(10, 'X')}K`;
  }

  startRun({ prompt, session_id: sessionId, files = {}, model = 'openrouter/some-model', agent = 'default' }, { instant = false, at = Date.now() } = {}) {
    const id = this.newId();
    const session = this.session(sessionId ?? this.newId());
    session.used = at;
    session.messages.push({ role: 'user', content: prompt });
    for (const [path, text] of Object.entries(files)) session.files.set(path, { bytes: Buffer.from(text), modified: at });
    if (prompt.includes('sales') && !session.files.has('sales.csv')) session.files.set('sales.csv', { bytes: Buffer.from(SALES_CSV), modified: at });
    const run = {
      id, session_id: session.id, status: 'running', prompt, model, agent, created: at, updated: at, steps: 0,
      result: null, stop: null, usage: { prompt: 0, completion: 0, cached: 0, cost: 0 }, tools: new Map(), artifacts: new Map(), waiting: [], reason: null,
      events: [], draft: [], calls: [], bus: new EventEmitter(), seq: 0, clock: at, drops: prompt.includes('drop') ? 4 : 0, cancelled: false,
    };
    run.bus.setMaxListeners(100);
    this.runs.set(id, run);
    run.script = scriptFor(prompt)(prompt, id);
    const isBusy = !instant && [...this.runs.values()].some((one) => one !== run && one.session_id === run.session_id && (one.status === 'running' || one.status === 'parked'));
    if (isBusy) run.status = 'queued';
    this.bus.emit('run', run);
    if (instant) this.playAll(run);
    else if (!isBusy) this.play(run);
    return run;
  }

  /** Plays a script at once, with the times that it would have had. */
  playAll(run) {
    for (let beat = run.script.next(); !beat.done; beat = run.script.next()) {
      run.clock += beat.value.wait ?? 1;
      if (PARTS.has(beat.value.event?.type)) continue;
      this.beat(run, beat.value);
      if (beat.value.park) return;
    }
  }

  play(run, answer) {
    const { done, value } = run.script.next(answer);
    if (done) return;
    run.timer = setTimeout(() => {
      if (run.cancelled) return;
      run.clock = Date.now();
      this.beat(run, value);
      if (!value.park) this.play(run);
    }, value.wait ?? 1);
  }

  beat(run, { event, calls, park, artifact }) {
    // A call takes 1 ms, or is still under way.
    if (calls) run.calls.push(...calls.map((call) => ({ ...call, ts: Math.round(run.clock), dur_ms: call.pending ? null : 1 })));
    if (artifact !== undefined) run.artifacts.set(event.name, artifact);
    if (park) {
      run.status = 'parked';
      run.waiting = [park];
      this.emit(run, { type: 'parked', ...park });
    }
    if (event) this.emit(run, event);
  }

  emit(run, event) {
    const isDelta = PARTS.has(event.type);
    if (!isDelta) run.seq += 1;
    // A stream that begins later sends the texts so far as one event each.
    run.draft = isDelta ? [...run.draft, event] : [];
    if (event.type === 'answer_void') run.draft = run.draft.filter((one) => !one.type.startsWith('answer_'));
    const envelope = { run_id: run.id, root_run_id: run.id, seq: isDelta ? undefined : run.seq, ts: Math.round(run.clock), ...event };
    run.updated = run.clock;
    if (envelope.run_id === run.id) this.track(run, envelope);
    if (!isDelta) run.events.push(envelope);
    run.bus.emit('event', envelope);
    if (!isDelta) this.bus.emit('run', run);
  }

  track(run, event) {
    if (event.step) run.steps = Math.max(run.steps, event.type === 'tool_start' ? event.step : run.steps);
    if (event.type === 'tool_start') run.lastLabel = event.label;
    if (event.type === 'tool_result') {
      const tool = run.tools.get(run.lastLabel) ?? { name: run.lastLabel, calls: 0, failed: 0, dur_ms: 0 };
      tool.calls += 1;
      tool.failed += event.success ? 0 : 1;
      tool.dur_ms += event.dur_ms;
      run.tools.set(run.lastLabel, tool);
    }
    if (event.type === 'response') {
      run.status = event.stop === 'answered' ? 'done' : event.stop === 'cancelled' ? 'cancelled' : 'stopped';
      Object.assign(run, { result: event.text, stop: event.stop, usage: event.usage });
      event.session_id = run.session_id;
      const session = this.session(run.session_id);
      // A server has the first message of a session once its run has ended.
      session.title ||= run.prompt.split('\n', 1)[0].slice(0, 60);
      session.messages.push({ role: 'assistant', content: event.text });
    }
    if (event.type === 'error') Object.assign(run, { status: 'failed', result: event.message });
    if (event.type === 'error' || event.type === 'response') this.startNext(run.session_id);
  }

  /** Starts the run that waits for an earlier one of its session. */
  startNext(session) {
    const next = [...this.runs.values()].find((one) => one.session_id === session && one.status === 'queued');
    if (!next) return;
    Object.assign(next, { status: 'running', updated: Date.now() });
    this.bus.emit('run', next);
    this.play(next);
  }

  cancel(run) {
    if (run.status !== 'running' && run.status !== 'parked' && run.status !== 'queued') return false;
    clearTimeout(run.timer);
    run.cancelled = true;
    run.waiting = [];
    run.clock = Date.now();
    this.emit(run, { type: 'response', text: 'stopped: cancelled (requested over HTTP)', steps: run.steps, usage: run.usage, stop: 'cancelled' });
    return true;
  }

  answer(run, approve, reason) {
    run.waiting = [];
    run.status = 'running';
    run.updated = Date.now();
    run.lastReason = reason;
    this.bus.emit('run', run);
    this.play(run, approve);
  }

  line(run) {
    const { id, session_id, status, prompt, model, agent, created, updated, steps, result, stop, usage, reason } = run;
    return { id, session_id, status, prompt, model, agent, created, updated, steps, result, stop, usage, reason };
  }

  details(run) {
    return { ...this.line(run), tools: [...run.tools.values()], artifacts: [...run.artifacts].map(([name, data]) => ({ name, bytes: data.length })), waiting: run.waiting, events_org: '* run' };
  }

  seed() {
    const now = Date.now();
    const hour = 3_600_000;
    const start = (prompt, age, session_id) => this.startRun({ prompt, session_id }, { instant: true, at: now - age });
    start('Look at all 10000 items of the long list', 30 * hour, 'long-list');
    for (let i = 0; i < 24; i += 1) start(`Say hello to person ${i + 1}`, (26 - i) * hour, `greetings-${i % 4}`);
    start('Fetch the page that will fail', 5 * hour, 'dead-page');
    start('Check the links in parallel', 3 * hour, 'dead-links');
    start('Print something hostile', 2.5 * hour, 'hostile');
    start('Leave each artifact for me', 2.2 * hour, 'artifacts');
    start('Which region sold most in sales.csv?', 2 * hour, 'q3-numbers');
    start('And which sold least? Look at sales.csv again.', 1.9 * hour, 'q3-numbers');
    start('Send the report after I approve', 0.1 * hour, 'report');
    const broken = start('Say hello to the job that ended its process', 0.3 * hour, 'nightly');
    Object.assign(broken, { status: 'parked', result: null, stop: null, reason: 'this run ended its process 2 times; last known: step 3: the model was asked' });
    broken.events.pop();
  }
}
