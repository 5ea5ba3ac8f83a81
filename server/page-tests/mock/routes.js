// The API routes of the mock server.
import { catalog } from './catalog.js';
import { check, exec } from './check.js';
import { fail } from './server.js';

const programs = catalog();
const FUNCTIONS = [
  ['str.upper', '(str.upper S)', 'converts a string to upper case'], ['str.split', '(str.split S SEPARATOR)', 'splits a string into an array'],
  ['str.words', '(str.words S)', 'splits a string at whitespace'], ['map.incr', '(map.incr MAP KEY BY)', 'adds to the number of a key'],
  ['fs.read', '(fs.read PATH)', 'reads a file'], ['fs.write', '(fs.write PATH TEXT)', 'writes a file'], ['http.get', '(http.get URL)', 'fetches a URL'],
].map(([name, signature, sentence]) => ({ name, signature, sentence }));

export async function routes(world, request, response, url) {
  const json = (status, value, headers = {}) => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
  const missing = (what) => fail(response, 404, 'not_found', `there is no ${what}`);
  const parts = url.pathname.split('/').slice(2).map(decodeURIComponent);
  const bytes = await readBody(request);
  const body = () => JSON.parse(bytes.toString() || '{}');
  const key = `${request.method} ${parts[0]}`;
  switch (key) {
    case 'POST run': case 'GET run': case 'DELETE run': return runRoutes(world, request, response, url, parts, body, json, missing);
    case 'GET runs': return parts[1] === 'stream' ? streamRuns(world, response) : json(200, listRuns(world, url.searchParams));
    case 'GET sessions': case 'POST sessions': case 'PUT sessions': case 'DELETE sessions': return sessionRoutes(world, request, response, parts, bytes, json, missing, url.searchParams.get('base') === 'true');
    case 'GET catalog': {
      if (!parts[1]) return json(200, { programs: programs.map(({ source, examples, ...rest }) => rest) });
      const saved = world.saved.get(parts[1]);
      const found = saved !== undefined ? { name: parts[1], description: 'saved', family: 'saved', origin: `programs/${parts[1]}.wat`, args: [], uses: [], source: saved, examples: [] } : programs.find((one) => one.name === parts[1]);
      return found ? json(200, found) : missing(`program ${parts[1]}`);
    }
    case 'POST catalog': {
      const { args } = body();
      return json(200, args.includes('missing') ? { success: false, exit_code: 4, output: '', error: 'ENOENT: there is no file "missing"', dur_ms: 1, fuel: 900 } : { success: true, exit_code: 0, output: `${parts[1]}(${args.join(', ')})`, error: null, dur_ms: 3, fuel: 12_400 });
    }
    case 'GET agents': return json(200, { agents: world.agents });
    case 'GET memory': return json(200, { items: world.memory.filter((one) => one.text.toLowerCase().includes((url.searchParams.get('words') ?? '').toLowerCase())) });
    case 'POST memory': world.memory = [{ id: world.memory.length + 1, text: body().text, created: Date.now() }, ...world.memory]; return json(201, { id: world.memory.length });
    case 'DELETE memory': world.memory = world.memory.filter((one) => String(one.id) !== parts[1]); return response.writeHead(204).end();
    case 'GET vars':
      if (!parts[1]) return json(200, { vars: [...world.vars].map(([name, value]) => ({ key: name, size: value.length })) });
      return world.vars.has(parts[1]) ? response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(world.vars.get(parts[1])) : missing('variable');
    case 'PUT vars': world.vars.set(parts[1], bytes.toString()); return response.writeHead(204).end();
    case 'DELETE vars': world.vars.delete(parts[1]); return response.writeHead(204).end();
    case 'GET language': return json(200, { functions: FUNCTIONS });
    case 'POST check': return setTimeout(() => json(200, check(body().body)), 15);
    case 'POST exec': return json(200, exec(body().body, body().args ?? [], body().fixtures));
    case 'POST test': {
      const expected = /results = \["([^"]*)"\]/.exec(body().body)?.[1];
      const { output } = exec(body().body.replace(/;;;.*/g, ''), [/args = \["([^"]*)"\]/.exec(body().body)?.[1]]);
      return json(200, { examples: [{ line: 8, passed: output === expected, differences: output === expected ? [] : [`result: found "${output}", expected "${expected}"`] }] });
    }
    case 'PUT catalog': {
      const { source, replace } = body();
      const known = world.saved.has(parts[1]);
      if (programs.some((one) => one.name === parts[1])) return fail(response, 409, 'conflict', `\`${parts[1]}\` is the name of a built-in program`, 'use another name');
      if (known && !replace) return fail(response, 409, 'conflict', `there is a program \`${parts[1]}\` already`, 'use another name, or send `"replace": true` to replace it');
      world.saved.set(parts[1], source);
      return json(known ? 200 : 201, { name: parts[1], file: `programs/${parts[1]}.wat` });
    }
    case 'GET traces': {
      const run = world.runs.get(parts[1]);
      return run ? json(200, { steps: run.events.filter((one) => one.type === 'tool_result').map((one) => ({ run_id: run.id, step: one.step, output: one.output, exit_code: one.exit_code, dur_ms: one.dur_ms, ts: one.ts })) }) : missing('run');
    }
    case 'GET settings': return json(200, {
      version: '0.3.0', model: 'openrouter/some-model', models: ['openrouter/some-model', 'openrouter/other-model'], agent: 'default', tenant: 'default', scopes: ['read', 'run', 'admin'],
      model_problem: world.modelProblem, max_steps: 40, body_bytes: 1_048_576, file_bytes: 16_777_216, exec: true, applies: true,
      settings: [{ key: 'model', value: 'openrouter/some-model', origin: '--model' }, { key: 'max_steps', value: 40, origin: 'default' }, { key: 'workdir', value: '/home/ada/data', origin: '/home/ada/projects/of-this-year/data/wattle.toml' }, { key: 'approvals', value: 'ask', origin: 'WATTLE_POLICY' }],
    });
    case 'GET tokens': return json(200, { tokens: world.tokens });
    case 'POST tokens': world.tokens.push({ name: body().name, scopes: body().scopes }); return json(200, { name: body().name, token: 'wt_once_only_8f2c' });
    case 'DELETE tokens': world.tokens = world.tokens.filter((one) => one.name !== parts[1]); return response.writeHead(204).end();
    case 'GET integrations': return json(200, { integrations: world.integrations });
    case 'POST integrations': world.integrations.push(body()); return json(200, body());
    case 'DELETE integrations': world.integrations = world.integrations.filter((one) => one.name !== parts[1]); return response.writeHead(204).end();
    default: return missing('route');
  }
}

function runRoutes(world, request, response, url, parts, body, json, missing) {
  if (request.method === 'POST' && !parts[1]) {
    const { prompt } = body();
    if (typeof prompt !== 'string' || prompt.trim() === '') return fail(response, 422, 'invalid', '`prompt` must be a text that is not empty');
    const run = world.startRun(body());
    return json(202, { id: run.id, session_id: run.session_id, status: run.status }, { location: `/api/run/${run.id}` });
  }
  const run = world.runs.get(parts[1] ?? '');
  if (!run) return missing('run with this id');
  const action = `${request.method} ${parts[2] ?? ''}`;
  switch (action) {
    case 'GET ': return json(200, world.details(run));
    case 'DELETE ': return json(world.cancel(run) ? 202 : 200, { id: run.id, status: run.status });
    case 'GET stream': return stream(world, run, url.searchParams.get('after') ?? '0', url.searchParams.get('tree') === 'true', response);
    case 'GET events': {
      const after = Number(url.searchParams.get('after') ?? 0);
      const events = run.events.filter((one) => one.seq > after).slice(0, Number(url.searchParams.get('limit') ?? 500));
      return json(200, { events, last: run.seq, done: !['running', 'parked', 'queued'].includes(run.status) });
    }
    case 'GET calls': return json(200, { calls: run.calls });
    case 'GET requests': return json(200, { requests: requestsOf(run) });
    case 'GET artifacts': {
      const data = run.artifacts.get(parts[3]);
      return data === undefined ? missing('artifact with this name') : response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(data);
    }
    case 'POST approvals': {
      if (!run.waiting.some((one) => one.call === parts[3])) return fail(response, 409, 'not_waiting', 'the run does not wait for this call');
      const { approve, reason } = body();
      world.answer(run, approve, reason);
      return json(200, world.details(run));
    }
    case 'POST release': run.reason = null; world.cancel(run); return json(202, { id: run.id, status: 'running' });
    case 'POST fork': {
      const { step, message } = body();
      const fork = world.startRun({ prompt: message ?? run.prompt });
      fork.forkedFrom = { id: run.id, step };
      return json(202, { id: fork.id, session_id: fork.session_id, status: fork.status });
    }
    case 'POST replay': return json(200, run.prompt.includes('hostile') ? { same: false, turns: 1, difference: { step: 1, what: 'the output', was: 'a', is: 'b' } } : { same: true, turns: 3 * run.steps, difference: null });
    default: return missing('route');
  }
}

/** A request for each thought and for the answer, as the conversation grows. */
function requestsOf(run) {
  const asked = run.events.filter((one) => one.run_id === run.id && (one.type === 'thinking' || one.type === 'response'));
  return asked.map((one, i) => ({
    step: one.step ?? i + 1, attempt: 0, same: i === 0 ? 0 : 2 * i,
    messages: i === 0 ? [{ role: 'system', content: 'You are an agent.\n'.repeat(200), calls: [] }, { role: 'user', content: run.prompt, calls: [] }] : [{ role: 'assistant', content: asked[i - 1].content ?? '', calls: [] }, { role: 'user', content: 'Execution result', calls: [] }],
    answer: { text: one.content ?? one.text, reasoning: null, calls: [], usage: { prompt: 2000 + 900 * i, completion: 80, cached: i === 0 ? 0 : 1800, cost: 0.001 } },
  }));
}

/** With `tree`, a stream also has the events of child runs, and the id of an event is `RUN:SEQ`. */
function stream(world, run, last, isTree, response) {
  const after = Number(last.split(':').at(-1));
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  let sent = 0;
  const isDone = () => !['running', 'parked', 'queued'].includes(run.status) || (run.reason !== null);
  const send = (event) => {
    if (event.run_id !== run.id && !isTree) return;
    const id = event.seq === undefined ? '' : `id: ${isTree ? `${event.run_id}:` : ''}${event.seq}\n`;
    response.write(`${id}data: ${JSON.stringify(event)}\n\n`);
    sent += event.seq === undefined ? 0 : 1;
    if (run.drops > 0 && sent >= 4) {
      run.drops -= 1;
      response.destroy();
      return;
    }
    if ((event.type === 'response' || event.type === 'error') && event.run_id === run.id) response.end();
  };
  for (const event of run.events) if (event.seq > after && !response.destroyed) send(event);
  for (const type of new Set(run.draft.map((one) => one.type))) {
    const parts = run.draft.filter((one) => one.type === type);
    if (!response.destroyed) send({ run_id: run.id, root_run_id: run.id, ts: Date.now(), ...parts[0], text: parts.map((one) => one.text).join('') });
  }
  if (isDone() && run.reason === null) return response.end();
  run.bus.on('event', send);
  const beat = setInterval(() => response.write(': heartbeat\n\n'), 15_000);
  response.on('close', () => {
    clearInterval(beat);
    run.bus.off('event', send);
  });
}

function streamRuns(world, response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const write = (change) => response.write(`data: ${JSON.stringify(change)}\n\n`);
  const send = (run) => write({ type: 'run', run: world.line(run) });
  write({ type: 'ready' });
  world.bus.on('run', send);
  response.on('close', () => world.bus.off('run', send));
}

function listRuns(world, query) {
  const limit = Number(query.get('limit') ?? 50);
  let runs = [...world.runs.values()].sort((a, b) => b.created - a.created);
  if (query.get('status')) runs = runs.filter((run) => run.status === query.get('status'));
  if (query.get('session_id')) runs = runs.filter((run) => run.session_id === query.get('session_id'));
  if (query.get('q')) runs = runs.filter((run) => `${run.prompt} ${run.result ?? ''}`.toLowerCase().includes(query.get('q').toLowerCase()));
  if (query.get('before')) runs = runs.slice(runs.findIndex((run) => run.id === query.get('before')) + 1);
  return { runs: runs.slice(0, limit).map((run) => world.line(run)), next: runs.length > limit ? runs[limit - 1].id : null };
}

function sessionRoutes(world, request, response, parts, bytes, json, missing, isBase) {
  const runsOf = (id) => [...world.runs.values()].filter((run) => run.session_id === id).sort((a, b) => b.created - a.created);
  const line = (one) => ({ id: one.id, title: one.title, messages: one.messages.length, bytes: JSON.stringify(one.messages).length, created: one.made, used: one.used });
  const files = (one) => [...one.files].map(([path, file]) => ({ path, size: file.bytes.length, modified: file.modified, created: path !== 'sales.csv', deleted: false }));
  if (!parts[1]) return json(200, { sessions: [...world.sessions.values()].sort((a, b) => b.used - a.used).map(line) });
  const session = world.sessions.get(parts[1]) ?? (request.method === 'PUT' ? world.session(parts[1]) : null);
  if (!session) return missing('session with this id');
  const path = parts.slice(3).join('/');
  switch (`${request.method} ${parts[2] ?? ''}${path ? '/' : ''}`) {
    case 'GET ': return json(200, { id: session.id, title: session.title, messages: session.messages, runs: runsOf(session.id).map((run) => world.line(run)), files: files(session) });
    case 'DELETE ': world.sessions.delete(session.id); return response.writeHead(204).end();
    case 'POST fork': {
      const fork = world.session(world.newId());
      Object.assign(fork, { title: session.title, messages: [...session.messages], files: new Map(session.files) });
      return json(201, { id: fork.id });
    }
    case 'GET export': return json(200, { id: session.id, messages: session.messages });
    case 'GET files': return json(200, { files: files(session) });
    case 'GET files/': {
      const file = isBase && session.files.has(path) ? { bytes: Buffer.from('day,region,units\n2026-03-01,north,11\n') } : session.files.get(path);
      return file ? response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(file.bytes) : missing(`file ${path}`);
    }
    case 'PUT files/': session.files.set(path, { bytes, modified: Date.now() }); return response.writeHead(204).end();
    case 'DELETE files/': session.files.delete(path); return response.writeHead(204).end();
    case 'POST apply': {
      const isConflict = (path) => path === 'sales.csv';
      const all = [...session.files.keys()];
      all.filter((path) => !isConflict(path)).forEach((path) => session.files.delete(path));
      return json(200, { applied: all.filter((path) => !isConflict(path)), left: all.filter(isConflict).map((path) => ({ path, reason: 'another process has changed the file' })) });
    }
    case 'GET files.tar': return response.writeHead(200, { 'content-type': 'application/x-tar' }).end(Buffer.alloc(1024));
    default: return missing('route');
  }
}

function readBody(request) {
  return new Promise((resolve) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => resolve(Buffer.concat(chunks)));
  });
}
