// Tests that need only the HTTP contract: they run against the mock, or against a real server.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import test from 'node:test';
import { setup, until } from '../browser/setup.js';

const world = setup();
const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));
const files = readdirSync(PAGE, { recursive: true }).filter((file) => statSync(PAGE + file).isFile());
const ENDED = ['done', 'failed', 'cancelled', 'blocked', 'stopped'];

test('the page is at most 300 kB compressed, without inline scripts and styles', () => {
  const size = files.reduce((sum, file) => sum + gzipSync(readFileSync(PAGE + file)).length, 0);
  assert.ok(size <= 300_000, `${size} bytes`);
  const html = readFileSync(`${PAGE}index.html`, 'utf8');
  assert.doesNotMatch(html, /<script>|<style|\sstyle=|\son\w+=/);
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    assert.doesNotMatch(readFileSync(PAGE + file, 'utf8'), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, file);
  }
});

test('static files need no token, and have a strict policy', async () => {
  for (const file of ['', ...files.filter((name) => name !== 'index.html')]) {
    const response = await fetch(`${world.url}/${file && `page/${file}`}`);
    assert.equal(response.status, 200, file);
    await response.arrayBuffer();
  }
  const policy = (await fetch(`${world.url}/`)).headers.get('content-security-policy') ?? '';
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]) assert.ok(policy.includes(part), part);
  assert.doesNotMatch(policy, /unsafe/);
});

test('the token leaves the address at once, and a new tab is signed in until a tab signs out', async () => {
  const { page, close } = await world.open('#/settings');
  await page.waitForURL((url) => !url.href.includes(world.token));
  const other = await page.context().newPage();
  await other.goto(world.url);
  await other.waitForSelector('.rail');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await other.getByLabel('Token').waitFor();
  await other.close();
  await close();
});

test('a token that is not kept is that of one tab', async () => {
  const { page, close } = await world.open('', { signedIn: false });
  await page.getByLabel('Token').fill(world.token);
  await page.getByLabel('Stay signed in on this device').uncheck();
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('.rail');
  await page.reload();
  await page.waitForSelector('.rail');
  assert.equal(await page.evaluate(() => localStorage.getItem('wattle.token')), null);
  await close();
});

test('a link replaces the token of a browser only after a question', async () => {
  const { page, problems } = await world.open('#/runs');
  const stored = () => page.evaluate(() => localStorage.getItem('wattle.token'));
  const follow = () => page.evaluate(() => { location.hash = '#token=another'; });
  const dialog = page.locator('dialog', { hasText: 'Replace the token of this browser' });
  await follow();
  await dialog.waitFor();
  assert.doesNotMatch(page.url(), /token/);
  assert.equal(await stored(), world.token);
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await stored(), world.token, 'a key that was meant for something else keeps the token');
  await follow();
  await dialog.getByRole('button', { name: 'Keep' }).click();
  assert.equal(await stored(), world.token);
  await page.goto(`${world.url}/?again#token=another`);
  await dialog.waitFor();
  await page.waitForSelector('.rail');
  assert.equal(await stored(), world.token);
  await dialog.getByRole('button', { name: 'Replace' }).click();
  // The server does not know this token.
  await page.getByLabel('Token').waitFor();
  assert.equal(await stored(), null);
  assert.ok(problems.every((text) => text.includes('401')), problems.join());
  await page.close();
});

test('the login refuses a wrong token and accepts the right one', async () => {
  const { page, problems } = await world.open('', { signedIn: false });
  await page.getByLabel('Token').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('The server does not accept this token.').waitFor();
  await page.getByLabel('Token').fill(world.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('.rail');
  assert.ok(problems.every((text) => text.includes('401')), problems.join());
  await page.close();
});

test('a message has an answer, a run and a place in the lists', async () => {
  const { page, close } = await world.open('#/chat');
  const text = `Say hello, number ${Date.now()}.`;
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
  await page.locator('.bubble', { hasText: text }).waitFor();
  await page.waitForURL(/#\/chat\/.+/);
  const run = await until(async () => (await world.api('GET', '/api/runs?limit=20')).runs.find((one) => one.prompt === text && ENDED.includes(one.status)), 'the run ends', 60_000);
  await until(() => page.locator('.turn .answer').last().textContent(), 'the answer is shown');
  await until(async () => (await page.getByRole('textbox', { name: 'Message' }).inputValue()) === '', 'the composer is empty');
  await page.goto(`${world.url}/#/runs`);
  await page.locator('table.runs a', { hasText: text }).first().click();
  await page.waitForURL(new RegExp(`#/run/${run.id}`));
  await page.locator('.wf-row').first().waitFor();
  await page.locator('.inspector header h2').waitFor();
  await close();
});

test('a run can be opened at a step', async () => {
  const { runs } = await world.api('GET', '/api/runs?limit=50');
  const run = runs.find((one) => one.steps > 0 && one.steps < 100) ?? runs[0];
  const { page, close } = await world.open(`#/run/${run.id}/1`);
  await page.locator('.wf-row[aria-selected="true"]').waitFor();
  await page.locator('.inspector header h2', { hasText: /^Step 1/ }).waitFor();
  for (const tab of ['Thought', 'Request', 'Program', 'Authority', 'Calls', 'Result', 'Raw']) {
    await page.getByRole('tab', { name: tab }).click();
    await until(() => page.getByRole('tabpanel').innerText(), `the tab ${tab} has content`);
  }
  await close();
});

test('the sandbox checks as one types, and runs', async () => {
  const { page, close } = await world.open('#/sandbox');
  const editor = page.getByLabel('Program', { exact: true });
  await editor.fill('(ret (str.upppper "hi"))');
  await page.locator('.problems li.error').first().waitFor();
  await until(async () => (await editor.getAttribute('aria-invalid')) === 'true', 'the field is invalid');
  await editor.fill('(ret (str.upper "hi"))');
  await page.locator('.bar .badge', { hasText: 'no errors' }).waitFor();
  await page.locator('.authority').waitFor();
  await page.keyboard.press('Control+Enter');
  await page.locator('.result .output', { hasText: /^\s*HI\s*$/ }).waitFor();
  await close();
});

test('the editor indents, completes, and can be left by keyboard', async () => {
  const { page, close } = await world.open('#/sandbox');
  const editor = page.getByLabel('Program', { exact: true });
  const holds = (text) => until(async () => (await editor.inputValue()) === text, `the editor holds ${text}`);
  await editor.fill('');
  await editor.pressSequentially('(each $x (args)');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await holds('(each $x (args)\n  ');
  await editor.pressSequentially('(ou');
  await page.locator('.completions li', { hasText: 'out' }).first().waitFor();
  await page.keyboard.press('Tab');
  await editor.pressSequentially(' $x))');
  await holds('(each $x (args)\n  (out $x))');
  await page.locator('.bracket-match').first().waitFor({ state: 'attached' });
  await page.keyboard.press('Control+z');
  await until(async () => (await editor.inputValue()) !== '(each $x (args)\n  (out $x))', 'the browser undoes');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Tab');
  assert.notEqual(await page.evaluate(() => document.activeElement?.tagName + (document.activeElement?.getAttribute('aria-label') ?? '')), 'TEXTAREAProgram');
  await close();
});

test('the sample of the sandbox runs as it is', async () => {
  const { page, close } = await world.open('#/runs');
  await page.evaluate(() => { localStorage.removeItem('wattle.sandbox'); localStorage.removeItem('wattle.sandbox.args'); location.hash = '#/sandbox'; });
  await page.locator('.bar .badge', { hasText: 'no errors' }).waitFor();
  for (const hash of ['', '#/sandbox?new=1']) {
    if (hash) await page.evaluate((address) => { location.hash = address; }, hash);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.result .status.done').waitFor();
  }
  await close();
});

test('the memory and the variables are listed, added and deleted', async () => {
  const { page, close } = await world.open('#/memory');
  const text = `The page was tested at ${Date.now()}`;
  await page.getByRole('button', { name: 'Add to Memory' }).click();
  await page.locator('dialog textarea').fill(text);
  await page.locator('dialog').getByRole('button', { name: 'Remember' }).click();
  const item = page.locator('.rows li', { hasText: text });
  await item.waitFor();
  await item.getByRole('button', { name: 'Forget this text' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Forget' }).click();
  await item.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Add to Variables' }).click();
  await page.getByLabel('Key', { exact: true }).fill('page/test');
  await page.getByLabel('Value').fill('one');
  await page.locator('dialog').getByRole('button', { name: 'Save' }).click();
  const variable = page.getByRole('button', { name: 'page/test', exact: true });
  await variable.click();
  assert.equal(await page.getByLabel('Value').inputValue(), 'one');
  await page.getByLabel('Value').fill('two');
  await page.locator('dialog').getByRole('button', { name: 'Save' }).click();
  await variable.click();
  await until(async () => (await page.getByLabel('Value').inputValue()) === 'two', 'the value is changed');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Delete page/test' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await variable.waitFor({ state: 'detached' });
  await close();
});

test('the agents are listed, and the usage counts the runs', async () => {
  const { runs } = await world.api('GET', '/api/runs?limit=1');
  const { page, close } = await world.open('#/agents');
  await page.getByRole('region', { name: 'Agents' }).locator('.card, .empty').first().waitFor();
  await page.evaluate(() => { location.hash = '#/usage'; });
  await page.getByRole('region', { name: 'Table by model' }).getByRole('rowheader', { name: runs[0].model, exact: true }).waitFor();
  await close();
});

test('a program of the catalog has a form of its arguments', async () => {
  const { programs } = await world.api('GET', '/api/catalog');
  const program = programs.find((one) => one.args.length > 0);
  const { page, close } = await world.open('#/catalog');
  await page.getByLabel('Search programs').fill(program.name);
  await page.locator('.program-list code', { hasText: new RegExp(`^${program.name}$`) }).click();
  await page.locator('.program-form').waitFor();
  for (const arg of program.args) await page.locator('.program-form label', { hasText: arg.name }).first().waitFor();
  await page.locator('.code-view').waitFor();
  await close();
});

test('files of a session are uploaded, shown and deleted', async () => {
  const { sessions } = await world.api('GET', '/api/sessions?limit=5');
  const { page, close } = await world.open(`#/sessions/${encodeURIComponent(sessions[0].id)}`);
  await page.getByLabel('Files to upload').setInputFiles({ name: 'page-test.txt', mimeType: 'text/plain', buffer: Buffer.from('first line\n') });
  await page.getByRole('button', { name: 'page-test.txt', exact: true }).click();
  await page.locator('.file-text', { hasText: 'first line' }).waitFor();
  await page.keyboard.press('Escape');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download page-test.txt' }).click();
  assert.equal((await download).suggestedFilename(), 'page-test.txt');
  await page.getByRole('button', { name: 'Delete page-test.txt' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
  await until(async () => (await page.getByRole('button', { name: 'page-test.txt', exact: true }).count()) === 0, 'the file is gone');
  await close();
});

test('the settings name the version and the origins', async () => {
  const settings = await world.api('GET', '/api/settings');
  const { page, close } = await world.open('#/settings');
  await page.locator('dd', { hasText: settings.version }).first().waitFor();
  await page.getByLabel('Dark').check();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.reload();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.getByLabel('As the system').check();
  await close();
});

test('the keyboard reaches everything', async () => {
  const { page, close } = await world.open('#/runs');
  await page.waitForSelector('w-runs .bar');
  await page.keyboard.press('?');
  await page.locator('dialog h2', { hasText: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search all' }).fill('sandbox');
  await page.keyboard.press('Enter');
  await page.waitForURL(/#\/sandbox/);
  await page.waitForSelector('w-sandbox .editor');
  await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.waitForURL(/#\/sessions/);
  await page.reload();
  await page.waitForSelector('w-sessions .bar');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to the content');
  await close();
});

test('an unknown run and an unknown session say so', async () => {
  const { page } = await world.open('#/run/01ZZZZZZZZZZZZZZZZZZZZZZZZ');
  await page.getByText('This run does not exist').waitFor();
  await page.evaluate(() => { location.hash = '#/chat/no-such-session-here'; });
  await page.getByText('This chat does not exist').waitFor();
  await page.close();
});
