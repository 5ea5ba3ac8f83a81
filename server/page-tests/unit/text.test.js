import assert from 'node:assert/strict';
import test from 'node:test';
import { completionsAt, helpAt } from '../../page/js/completion.js';
import { diffLines } from '../../page/js/diff.js';
import { bytes, cost, count, duration, firstLine, short, shortId, visible } from '../../page/js/format.js';
import { filterRuns, mergeRun, sortRuns } from '../../page/js/runs-list.js';
import { href, parseRoute } from '../../page/js/router.js';
import { indentationAt, matchBrackets, tokenize } from '../../page/js/tokens.js';

test('control characters and overrides are visible', () => {
  assert.equal(visible('a\u001b[31mb\u0007'), 'a⟨ESC⟩[31mb⟨BEL⟩');
  assert.equal(visible('x\u202eexe.gpj\u202c'), 'x⟨U+202E⟩exe.gpj⟨U+202C⟩');
  assert.equal(visible('tab\tline\r\nend'), 'tab\tline\nend');
  assert.equal(visible('👩‍💻 שלום'), '👩‍💻 שלום');
  assert.equal(visible('\u{e0041}'), '⟨U+E0041⟩');
});

test('numbers, times and ids', () => {
  assert.deepEqual([4, 1900, 65_000, 3_700_000].map(duration), ['4 ms', '1.9 s', '1 min 5 s', '1 h 1 min']);
  assert.deepEqual([812, 6100, 1_200_000].map(bytes), ['812 B', '6.1 kB', '1.2 MB']);
  assert.deepEqual([999, 4210, 1_300_000].map(short), ['999', '4.2k', '1.3M']);
  assert.deepEqual([cost(0.004), cost(4.2), cost(0), cost(undefined)], ['$0.004', '$4.20', '', '']);
  assert.deepEqual([count(1, 'step'), count(10_000, 'step')], ['1 step', '10,000 steps']);
  assert.equal(shortId('01JZW0001ABCDEFGHIJK'), '01JZ…HIJK');
  assert.equal(firstLine('\n a\nb'), 'a');
});

test('tokens cover the whole text', () => {
  const source = ';; note\n(let $x "a\\"b")\n(out (fmt r"\\d" 0x1f 2.5 ENOENT))(; block ;) (i32.add $x 1) (kv.get "k") \'a\' """long\n"""';
  const tokens = tokenize(source);
  assert.equal(tokens.map((token) => token.text).join(''), source);
  const kindOf = (text) => tokens.find((token) => token.text === text)?.kind;
  assert.deepEqual(['let', '$x', '"a\\"b"', '0x1f', 'ENOENT', 'i32.add', 'kv.get', "'a'", '(; block ;)'].map(kindOf), ['form', 'local', 'string', 'number', 'code', 'instruction', 'call', 'string', 'comment']);
});

test('brackets match outside strings', () => {
  const source = '(out ")" (x))';
  assert.deepEqual(matchBrackets(tokenize(source), 0), { at: 0, partner: 12 });
  assert.deepEqual(matchBrackets(tokenize('((a)'), 0), { at: 0, partner: null });
  assert.equal(matchBrackets(tokenize('abc'), 1), null);
});

test('a new line is indented by its open brackets', () => {
  assert.equal(indentationAt('(each $x (args)', 15), '  ');
  assert.equal(indentationAt('(each $x (args)\n  (when (= $x 1)', 32), '    ');
  assert.equal(indentationAt('(out 1)', 7), '');
});

test('completions and help', () => {
  const functions = [{ name: 'map.incr', signature: '(map.incr MAP KEY BY)', sentence: 'adds' }];
  assert.ok(completionsAt('(let $total 1)\n(out $to', 23, functions, []).items.some((item) => item.label === '$total'));
  assert.deepEqual(completionsAt('(map.i', 6, functions, []), { start: 1, items: [{ label: 'map.incr', insert: 'map.incr', note: '(map.incr MAP KEY BY)' }] });
  assert.equal(completionsAt('(call "kv_', 10, [], [{ name: 'kv_get', signature: '', sentence: 'x' }]).items[0].label, 'kv_get');
  assert.equal(helpAt('(map.incr $m "k" 1)', 12, functions, false).signature, '(map.incr MAP KEY BY)');
  assert.equal(helpAt('(map.incr $m "k" 1)', 12, functions, true), null);
});

test('differences', () => {
  const lines = diffLines('a\nb\nc\nd', 'a\nx\nc\nd\ne');
  assert.deepEqual(lines.map((line) => `${{ same: ' ', added: '+', removed: '-' }[line.kind]}${line.text}`), [' a', '-b', '+x', ' c', ' d', '+e']);
  assert.deepEqual(lines.map((line) => [line.before, line.after]), [[1, 1], [2, null], [null, 2], [3, 3], [4, 4], [null, 5]]);
  assert.ok(diffLines('', '').every((line) => line.kind === 'same'));
});

test('runs are filtered and sorted', () => {
  const run = (id, more) => ({ id, status: 'done', agent: 'a', created: 0, updated: 10, steps: 1, usage: { prompt: 1, completion: 1, cost: 1 }, ...more });
  const runs = [run('1'), run('2', { status: 'failed', created: 5 }), run('3', { steps: 9, usage: null })];
  const all = { status: '', agent: '', tool: '', hours: 0, cost: 0, tools: () => null };
  assert.deepEqual(filterRuns(runs, { ...all, status: 'failed' }).map((one) => one.id), ['2']);
  assert.deepEqual(filterRuns(runs, { ...all, cost: 0.5 }).map((one) => one.id), ['1', '2']);
  assert.deepEqual(filterRuns(runs, { ...all, tool: 'kv', tools: (id) => (id === '1' ? ['kv_get'] : []) }).map((one) => one.id), ['1']);
  assert.deepEqual(sortRuns(runs, 'steps', 'desc').map((one) => one.id), ['3', '2', '1']);
  assert.deepEqual(sortRuns(runs, 'created', 'desc')[0].id, '2');
});

test('addresses', () => {
  const route = parseRoute(href('run', ['a/b', 2], { q: 'x&y' }));
  assert.deepEqual([route.view, route.path, route.query.get('q')], ['run', ['a/b', '2'], 'x&y']);
  assert.equal(parseRoute('').view, 'chat');
});

test('a run that changed replaces its older state, and a new one has its place', () => {
  const run = (id, created, updated) => ({ id, created, updated });
  const runs = [run('c', 30, 31), run('a', 10, 11)];
  assert.deepEqual(mergeRun(runs, run('b', 20, 20), 5).map((one) => one.id), ['c', 'b', 'a']);
  assert.deepEqual(mergeRun(runs, run('d', 40, 40), 2).map((one) => one.id), ['d', 'c']);
  assert.deepEqual(mergeRun(runs, run('z', 1, 1), 2).map((one) => one.id), ['c', 'a']);
  assert.equal(mergeRun(runs, run('a', 10, 15), 5)[1].updated, 15);
  assert.equal(mergeRun(runs, run('a', 10, 5), 5)[1].updated, 11, 'an older state is dropped');
});
