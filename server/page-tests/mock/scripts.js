// Runs of the mock server as scripts: each yields events with pauses, so that the page sees what a
// real run sends. A script is a function of the message.

const BROKEN = `(let $total (map))
(each $row (str.lines (fs.read "sales.csv"))
  (let ($day $region $units) (str.split $row ","))
  (map.increment $total $region (str.to_int $units)))
(each $region $units $total
  (out (fmt "{} {}" $region $units)))`;
const FIXED = BROKEN.replace('map.increment', 'map.incr');
const JSON_ROWS = JSON.stringify(
  Array.from({ length: 120 }, (_, i) => ({ day: `2026-03-${String((i % 28) + 1).padStart(2, '0')}`, region: ['north', 'east', 'south', 'west'][i % 4], units: (i * 7) % 40 })),
);
const ANSWER = `**East sold most: 1,809 units.**

| Region | Units |
|:--|--:|
| east | 1,809 |
| north | 1,770 |
| south | 1,696 |
| west | 1,511 |

The numbers are sums of the column \`units\` in \`sales.csv\`, over 120 rows.

\`\`\`wat
(out (fmt "{} {}" $region $units))
\`\`\`

- The file has no rows for **31 March**.
- See [the method](https://example.org/method) for how the regions are assigned.
`;
const USAGE = { prompt: 3980, completion: 230, cached: 3900, cost: 0.004 };

/** @typedef {{wait?: number, event?: Record<string, any>, calls?: any[], artifact?: string, park?: {call: string, question: string}, end?: Record<string, any>}} Beat */

/** The events of an answer that is being written. A server does not number or keep them. */
export const PARTS = new Set(['delta', 'thought_delta', 'answer_delta', 'answer_void']);

function* typed(step, text, pause = 18) {
  const call = text.indexOf('ToolCall::');
  const end = call < 0 ? text.length : call;
  let at = 0;
  for (const piece of text.match(/[\s\S]{1,7}/g) ?? []) {
    yield { wait: pause, event: { type: 'delta', step, text: piece } };
    const shown = text.slice(at, Math.min(at + piece.length, end));
    if (shown) yield { wait: 0, event: { type: 'answer_delta', step, text: shown } };
    if (at < end && at + piece.length > end) yield { wait: 0, event: { type: 'answer_void', step } };
    at += piece.length;
  }
}

function host(step, program, number, name, args, result, effect = 'read', error = null) {
  return { step, program, path: '', number, function: name, effect, args, result, error, pending: false, ts: null, dur_ms: null };
}

export function* sales() {
  yield* typed(1, 'I first read the file as JSON.\nToolCall::Catalog("csv_to_json", "sales.csv")');
  yield { wait: 200, event: { type: 'thinking', step: 1, content: 'I first read the file as JSON to see its columns.' } };
  yield { event: { type: 'tool_start', step: 1, call: 1, label: 'csv_to_json', source: 'catalog', description: 'Convert a CSV file to JSON', args: ['sales.csv'] } };
  yield { wait: 60, calls: [host(1, 1, 1, 'fs.read', '("sales.csv")', 'day,region,units\n2026-03-01,north,12\n…')] };
  yield { event: { type: 'tool_result', step: 1, call: 1, source: 'catalog', success: true, output: `${JSON_ROWS.slice(0, 1800)}… (120 rows, 6.1 kB)`, exit_code: 0, dur_ms: 4, fuel: 18_230 } };
  yield* typed(2, `Sum the units by region.\nToolCall::Wat("${BROKEN}")`);
  yield { wait: 150, event: { type: 'thinking', step: 2, content: 'Sum the units by region in one program.' } };
  yield { event: { type: 'tool_start', step: 2, call: 1, label: 'wat', source: 'wat', description: 'Sum the units by region in one program.', body: BROKEN } };
  yield { wait: 120, event: { type: 'retry', step: 2, attempt: 2, error: 'line 4, column 4: unknown function `map.increment`\nhint: did you mean `map.incr`?' } };
  yield* typed(2, `The function is map.incr.\nToolCall::Fix("map.increment", "map.incr")`);
  yield { wait: 100, event: { type: 'thinking', step: 2, content: 'The function is called map.incr.' } };
  yield { event: { type: 'tool_start', step: 2, call: 1, label: 'wat', source: 'wat', description: 'The function is called map.incr.', body: FIXED } };
  yield { wait: 80, calls: [host(2, 1, 1, 'fs.read', '("sales.csv")', 'day,region,units\n2026-03-01,north,12\n…')] };
  yield { event: { type: 'tool_result', step: 2, call: 1, source: 'wat', success: true, output: 'east 1809\nnorth 1770\nsouth 1696\nwest 1511', exit_code: 0, dur_ms: 2, fuel: 41_022, fixed: ['added the missing bracket at the end of line 4'] } };
  yield* typed(3, ANSWER, 14);
  yield { wait: 100, event: { type: 'response', text: ANSWER, steps: 2, usage: USAGE, stop: 'answered' } };
}

export function* hello(message) {
  const text = `Hello! You wrote: ${message.slice(0, 80)}`;
  yield* typed(1, text, 10);
  yield { wait: 20, event: { type: 'response', text, steps: 0, usage: { prompt: 900, completion: 12, cached: 0, cost: 0.0004 }, stop: 'answered' } };
}

const POST = `(let $report (fs.read "report.md"))
(out (http.post "https://hooks.example.org/q3" $report))`;

export function* approval() {
  yield { wait: 200, event: { type: 'thinking', step: 1, content: 'Send the report to the hook.' } };
  yield { event: { type: 'tool_start', step: 1, call: 1, label: 'wat', source: 'wat', description: 'Send the report to the hook.', body: POST } };
  yield { wait: 50, calls: [host(1, 1, 1, 'fs.read', '("report.md")', '# Q3\n…'), { ...host(1, 1, 2, 'http.post', '("https://hooks.example.org/q3", "# Q3…")', null, 'write'), pending: true }] };
  const approved = yield { park: { call: '1.1', question: 'http.post https://hooks.example.org/q3: send 2,104 bytes of report.md' } };
  if (approved) {
    yield { wait: 150, event: { type: 'tool_result', step: 1, call: 1, source: 'wat', success: true, output: 'ok', exit_code: 0, dur_ms: 212, fuel: 9_100 } };
    yield* typed(2, 'The report was sent.');
    yield { wait: 50, event: { type: 'response', text: 'The report was sent.', steps: 1, usage: USAGE, stop: 'answered' } };
  } else {
    yield { wait: 50, event: { type: 'tool_result', step: 1, call: 1, source: 'wat', success: false, output: 'EDENIED: a person denied the call', exit_code: 2, dur_ms: 8, fuel: 9_100 } };
    yield { wait: 300, event: { type: 'response', text: 'I did not send the report: the call was denied.', steps: 1, usage: USAGE, stop: 'answered' } };
  }
}

export function* parallel(_message, run) {
  yield { wait: 150, event: { type: 'thinking', step: 1, content: 'Check the three sites at once, and ask a researcher for the fourth.' } };
  for (const [i, site] of ['example.org', 'example.com', 'example.net'].entries()) {
    yield { wait: 5, event: { type: 'tool_start', step: 1, call: i + 1, label: 'web_check', source: 'catalog', description: 'Check that a page responds', args: [`https://${site}/`] } };
  }
  yield { wait: 5, event: { type: 'tool_start', step: 1, call: 4, label: 'delegate', source: 'catalog', description: 'Ask another agent', args: ['researcher', 'Which of the links in notes.md are dead?'] } };
  const child = `${run}C1`;
  yield { wait: 300, event: { type: 'thinking', run_id: child, step: 1, content: 'Read the notes.' } };
  yield { event: { type: 'tool_start', run_id: child, step: 1, call: 1, label: 'web_links', source: 'catalog', description: 'List the links of a page', args: ['notes.md'] } };
  yield { wait: 200, event: { type: 'tool_result', step: 1, call: 1, source: 'catalog', success: true, output: '200 OK', exit_code: 0, dur_ms: 480, fuel: 5_000 } };
  yield { wait: 150, event: { type: 'tool_result', run_id: child, step: 1, call: 1, source: 'catalog', success: true, output: 'https://example.org/a\nhttps://example.org/b', exit_code: 0, dur_ms: 330, fuel: 8_000 } };
  yield { event: { type: 'tool_result', step: 1, call: 3, source: 'catalog', success: false, output: 'EREMOTE: https://example.net/: connection refused', exit_code: 9, dur_ms: 640, fuel: 4_000 } };
  yield { wait: 300, event: { type: 'thinking', run_id: child, step: 2, content: 'Try each of them.' } };
  yield { event: { type: 'tool_start', run_id: child, step: 2, call: 1, label: 'wat', source: 'wat', description: 'Try each of them.', body: '(each $l (args) (catch $e (http.get $l)) (out (fmt "{} {e}" $l $e)))', args: ['https://example.org/a', 'https://example.org/b'] } };
  yield { wait: 400, event: { type: 'tool_result', step: 1, call: 2, source: 'catalog', success: true, output: '200 OK', exit_code: 0, dur_ms: 1210, fuel: 5_000 } };
  yield { wait: 200, event: { type: 'tool_result', run_id: child, step: 2, call: 1, source: 'wat', success: true, output: 'https://example.org/a EREMOTE\nhttps://example.org/b 0', exit_code: 0, dur_ms: 580, fuel: 12_000 } };
  yield { wait: 200, event: { type: 'response', run_id: child, text: 'One link is dead: https://example.org/a', steps: 2, usage: USAGE, stop: 'answered' } };
  yield { wait: 20, event: { type: 'tool_result', step: 1, call: 4, source: 'catalog', success: true, output: 'One link is dead: https://example.org/a', exit_code: 0, dur_ms: 2140, fuel: 2_000 } };
  yield* typed(2, 'One site and one link are down.');
  yield { wait: 50, event: { type: 'response', text: 'One site is down: <https://example.net/>. One link is dead: <https://example.org/a>.', steps: 1, usage: USAGE, stop: 'answered' } };
}

// An agent with a trait and memory, whose programs leave data for the application.
export function* artifacts() {
  yield { wait: 20, event: { type: 'contributed', step: 1, program: 'house_style.prompt' } };
  yield { wait: 5, event: { type: 'contributed', step: 1, program: 'calendar.today', error: 'EREMOTE: the calendar <b>does not</b> respond' } };
  yield { wait: 5, event: { type: 'recalled', step: 1, items: 2 } };
  yield { wait: 100, event: { type: 'thinking', step: 1, content: 'Write the sums as a table.' } };
  yield { event: { type: 'tool_start', step: 1, call: 1, label: 'wat', source: 'wat', description: 'Write the sums as a table.', body: '(sys.artifact "sums.csv" "region,units\\neast,1809\\n")' } };
  yield { wait: 30, event: { type: 'tool_result', step: 1, call: 1, source: 'wat', success: true, output: '', exit_code: 0, dur_ms: 3, fuel: 900 } };
  yield { event: { type: 'artifact', step: 1, call: 1, name: 'sums.csv', bytes: 12 }, artifact: 'not the last' };
  yield { event: { type: 'artifact', step: 1, call: 1, name: '../chart \u202e<b>.svg', bytes: 6 }, artifact: '<svg/>' };
  yield { event: { type: 'artifact', step: 1, call: 1, name: 'sums.csv', bytes: 23 }, artifact: 'region,units\neast,1809\n' };
  yield { wait: 50, event: { type: 'response', text: 'The sums are in the table.', steps: 1, usage: USAGE, stop: 'answered' } };
}

export function* failing() {
  yield { wait: 200, event: { type: 'thinking', step: 1, content: 'Read the page.' } };
  yield { event: { type: 'tool_start', step: 1, call: 1, label: 'http_get', source: 'catalog', description: 'Fetch a URL', args: ['https://example.org/gone'] } };
  yield { wait: 90, event: { type: 'tool_result', step: 1, call: 1, source: 'catalog', success: false, output: 'EREMOTE: https://example.org/gone: status 404', exit_code: 9, dur_ms: 88, fuel: 3_000 } };
  yield { wait: 300, event: { type: 'error', message: 'error: the model did not respond: 503 Service Unavailable (3 attempts)' } };
}

// Text that tries to mislead: control characters, bidirectional overrides, HTML and unsafe links.
export function* hostile() {
  const text = 'Red: \u001b[31mred\u001b[0m. Override: \u202egnp.exe\u202c. <img src=x onerror=alert(1)> <script>alert(1)</script>\n\n[click](javascript:alert(1)) ![image](https://evil.example/x.png) [good](https://example.org/)';
  yield { wait: 50, event: { type: 'thinking', step: 1, content: 'A thought with \u202eoverride and <b>tags</b>.' } };
  yield { event: { type: 'tool_start', step: 1, call: 1, label: 'wat', source: 'wat', description: 'Print', body: '(out "\u202e hidden")' } };
  yield { wait: 30, event: { type: 'tool_result', step: 1, call: 1, source: 'wat', success: true, output: '\u001b[2Jcleared \u0007 <script>alert(2)</script>', exit_code: 0, dur_ms: 1, fuel: 100 } };
  yield { wait: 50, event: { type: 'response', text, steps: 1, usage: USAGE, stop: 'answered' } };
}

export function* slow() {
  yield { wait: 400, event: { type: 'thinking', step: 1, content: 'Wait for the job.' } };
  yield { event: { type: 'tool_start', step: 1, call: 1, label: 'shell', source: 'catalog', description: 'Run a command', args: ['sleep 600'] } };
  yield { wait: 600_000, event: { type: 'tool_result', step: 1, call: 1, source: 'catalog', success: true, output: '', exit_code: 0, dur_ms: 600_000, fuel: 1 } };
}

// An answer that stops in the middle.
export function* hold() {
  yield* typed(1, 'The words before the break', 5);
  yield { wait: 600_000, event: { type: 'response', text: 'The words before the break and after it.', steps: 0, usage: USAGE, stop: 'answered' } };
}

// Fifteen short steps; the server drops its connections.
export function* dropping() {
  for (let step = 1; step <= 15; step += 1) {
    yield* typed(step, `Step ${step} is written here.`, 5);
    yield { wait: 60, event: { type: 'thinking', step, content: `Thought ${step}` } };
    yield { event: { type: 'tool_start', step, call: 1, label: 'kv_incr', source: 'catalog', description: 'Add to a number', args: ['n'] } };
    yield { wait: 30, event: { type: 'tool_result', step, call: 1, source: 'catalog', success: true, output: String(step), exit_code: 0, dur_ms: 1, fuel: 50 } };
  }
  yield { wait: 30, event: { type: 'response', text: 'Counted to 15.', steps: 15, usage: USAGE, stop: 'answered' } };
}

export function* long(message) {
  const steps = Number(/\d+/.exec(message)?.[0] ?? 10_000);
  for (let step = 1; step <= steps; step += 1) {
    yield { wait: 900, event: { type: 'thinking', step, content: `Look at item ${step} of the list.` } };
    yield { wait: 1, event: { type: 'tool_start', step, call: 1, label: step % 3 ? 'kv_incr' : 'wat', source: step % 3 ? 'catalog' : 'wat', description: '', ...(step % 3 ? { args: ['n'] } : { body: `(out (kv.incr "n" ${step}))` }) } };
    yield { wait: (step * 37) % 400, event: { type: 'tool_result', step, call: 1, source: 'catalog', success: step % 50 !== 0, output: `item ${step}`, exit_code: step % 50 ? 0 : 4, dur_ms: (step * 37) % 400, fuel: 50 * step } };
  }
  yield { wait: 500, event: { type: 'response', text: `Looked at ${steps} items.`, steps, usage: { prompt: 9_120_000, completion: 210_000, cached: 9_000_000, cost: 4.2 }, stop: steps >= 10_000 ? 'max_steps' : 'answered' } };
}

export function scriptFor(message) {
  const scripts = { sales, approve: approval, parallel, fail: failing, hostile, slow, hold, drop: dropping, long, artifact: artifacts };
  for (const [word, script] of Object.entries(scripts)) if (message.toLowerCase().includes(word)) return script;
  return hello;
}
