// Runs all tests, and prints one line. Exits with 0 only if all pass.
// `WATTLE_URL` and `WATTLE_TOKEN` run the tests of the contract against a server; the tests of
// scripts run against the mock in any case.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = import.meta.dirname;
const list = (folder) => readdirSync(join(root, folder)).filter((name) => name.endsWith('.test.js')).map((name) => join(folder, name));
const run = (command, args) => spawnSync(command, args, { cwd: root, encoding: 'utf8' });

const types = run(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '--noEmit', '--project', '.']);
// One file after the other: each starts a browser, and frames are measured.
const tests = run(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=tap', ...list('unit'), ...list('contract'), ...list('browser')]);
const total = (name) => Number(new RegExp(`^# ${name} (\\d+)`, 'm').exec(tests.stdout)?.[1] ?? 0);
const isGood = types.status === 0 && tests.status === 0 && total('pass') > 0;

if (types.status !== 0) console.error(types.stdout);
if (tests.status !== 0) console.error(tests.stdout.split('\n').filter((line) => !/^(ok|# Subtest|\s+(?:duration_ms|---|\.\.\.|at |type:))/.test(line)).join('\n'), tests.stderr);
const target = process.env.WATTLE_URL ? `${process.env.WATTLE_URL} and the mock` : 'the mock';
console.log(`page: ${isGood ? 'ok' : 'FAILED'}, types ${types.status === 0 ? 'ok' : 'wrong'}, ${total('pass')} of ${total('tests')} tests pass (${target})`);
process.exitCode = isGood ? 0 : 1;
