// Runs of the mock: the waterfall, the inspector, replay, forks, connections, long runs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { setup, until } from './setup.js';

const world = setup({ mockOnly: true });
const start = async (prompt, session) => world.api('POST', '/api/run', { prompt, ...(session ? { session_id: session } : {}) });
const rows = (page) => page.locator('.wf-row');

test('a repair shows its error under the line, and the difference', async () => {
  const run = world.find('Which region');
  const { page, close } = await world.open(`#/run/${run.id}/2/1`);
  await page.locator('.code-view li.error .message', { hasText: 'unknown function' }).waitFor();
  assert.match(await page.locator('.diff-line.removed').innerText(), /map\.increment/);
  assert.match(await page.locator('.diff-line.added').innerText(), /map\.incr /);
  await page.getByRole('tab', { name: 'Authority' }).click();
  await page.locator('.authority code', { hasText: 'sales.csv' }).waitFor();
  await page.getByRole('tab', { name: 'Calls' }).click();
  await page.locator('.host-calls b', { hasText: 'fs.read' }).waitFor();
  await page.getByRole('tab', { name: 'Thought' }).click();
  assert.match(await page.getByRole('tabpanel').innerText(), /Attempt 1\s+Sum the units[\s\S]*unknown function map\.increment[\s\S]*Attempt 2\s+The function is called/);
  await page.getByRole('tab', { name: 'Raw' }).click();
  await page.locator('.cut', { hasText: 'tool_result' }).first().waitFor();
  await close();
});

test('parallel calls and the child run have lanes; rows close and open', async () => {
  const run = world.find('parallel');
  const { page, close } = await world.open(`#/run/${run.id}/1`);
  await rows(page).filter({ hasText: 'web_links' }).waitFor();
  const whole = 11;
  await until(async () => (await rows(page).count()) === whole, 'all rows');
  const boxes = await Promise.all([1, 2].map((i) => rows(page).nth(i).locator('.wf-bar').boundingBox()));
  assert.ok(boxes[0].x < boxes[1].x + boxes[1].width && boxes[1].x < boxes[0].x + boxes[0].width, 'parallel bars overlap');
  await page.locator('.wf').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowLeft');
  await until(async () => (await rows(page).count()) === 2, 'the step closes');
  await page.keyboard.press('ArrowRight');
  await until(async () => (await rows(page).count()) === whole, 'the step opens');
  await page.keyboard.press('ArrowDown');
  await page.waitForURL(/\/1\/1$/);
  await close();
});

test('a step shows its requests with their messages and tokens, and a call that waits says so', async () => {
  const { page, close } = await world.open(`#/run/${world.find('Which region').id}/2`);
  await page.getByRole('tab', { name: 'Request' }).click();
  const panel = page.getByRole('tabpanel');
  await panel.getByText('2,900 tokens, 1,800 of them from the cache (62 %)').waitFor();
  await panel.getByText('2 messages as in the request before').first().click();
  await panel.getByText('system').first().click();
  await panel.getByText('You are an agent.').first().waitFor();
  await page.evaluate((address) => { location.hash = address; }, `#/run/${world.find('after I approve').id}/1/1`);
  await page.getByRole('tab', { name: 'Result' }).click();
  await panel.getByText('The call waits for your approval.').waitFor();
  await close();
});

test('the rows of a run are not those of the run before', async () => {
  const { page, close } = await world.open(`#/run/${world.find('will fail').id}`);
  await rows(page).filter({ hasText: 'http_get' }).waitFor();
  await page.evaluate((address) => { location.hash = address; }, `#/run/${world.find('Which region').id}`);
  await rows(page).filter({ hasText: 'csv_to_json' }).waitFor();
  assert.equal(await rows(page).filter({ hasText: 'http_get' }).count(), 0);
  await close();
});

test('a dialog closes when its view is left', async () => {
  const { page, close } = await world.open('#/runs');
  await page.evaluate((address) => { location.hash = address; }, `#/run/${world.find('Which region').id}`);
  await page.getByRole('button', { name: 'Fork here' }).click();
  await page.locator('dialog').waitFor();
  await page.goBack();
  await page.locator('dialog').waitFor({ state: 'detached' });
  await close();
});

test('on a phone the filters of runs take one row until they are opened', async () => {
  const { page, close } = await world.open('#/runs?status=done', { size: { width: 400, height: 800 } });
  const filters = page.locator('.filters');
  await page.getByRole('button', { name: 'Filters (1)' }).waitFor();
  assert.ok((await filters.boundingBox()).height < 50);
  await page.getByRole('button', { name: 'Filters (1)' }).click();
  await page.getByLabel('Status').selectOption('failed');
  await page.waitForURL(/status=failed/);
  await close();
});

test('a running run grows', async () => {
  const { page, close } = await world.open('#/runs');
  const { id } = await start('Which region sold most in sales.csv, live?');
  await page.evaluate((address) => { location.hash = address; }, `#/run/${id}`);
  await page.locator('.wf-row .live').first().waitFor();
  await rows(page).filter({ hasText: 'csv_to_json' }).waitFor();
  await rows(page).filter({ hasText: 'repaired ×1' }).waitFor();
  await page.locator('.facts .status.done').waitFor();
  await until(async () => (await page.locator('.wf-row .live').count()) === 0, 'no row runs');
  await close();
});

test('the replay steps with the arrow keys', async () => {
  const run = world.find('Which region sold most in sales.csv?');
  const { page, close } = await world.open(`#/run/${run.id}`);
  await rows(page).first().waitFor();
  await page.keyboard.press('r');
  await page.locator('.replay-bar', { hasText: 'step 1 · thought' }).waitFor();
  await until(async () => (await page.locator('.wf-row.later').count()) > 3, 'later rows are dimmed');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.locator('.replay-bar', { hasText: 'step 1 · result' }).waitFor();
  await page.keyboard.press('ArrowLeft');
  await page.locator('.replay-bar', { hasText: 'step 1 · program' }).waitFor();
  await page.getByRole('button', { name: 'Verify' }).click();
  await page.locator('.toast', { hasText: /^The replay is identical to the run$/ }).waitFor();
  await page.keyboard.press('Escape');
  await until(async () => (await page.locator('.wf-row.later').count()) === 0, 'no row is dimmed');
  await close();
});

test('a run is forked from a step', async () => {
  const run = world.find('Which region sold most in sales.csv?');
  const { page, close } = await world.open(`#/run/${run.id}/1`);
  await page.locator('.wf-row[aria-selected="true"]').waitFor();
  await page.getByRole('button', { name: 'Fork here' }).click();
  await page.locator('dialog h2', { hasText: 'Fork after step 1' }).waitFor();
  await page.locator('dialog textarea').fill('Say hello instead');
  await page.locator('dialog').getByRole('button', { name: 'Fork' }).click();
  await page.waitForURL((url) => url.hash.startsWith('#/run/') && !url.hash.includes(run.id));
  assert.equal(world.find('Say hello instead').forkedFrom.step, 1);
  await close();
});

test('a cancelled run ends at once', async () => {
  const { id } = await start('A slow job');
  const { page, close } = await world.open(`#/run/${id}`);
  await rows(page).filter({ hasText: 'shell' }).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.locator('.facts .status.cancelled').waitFor();
  await page.locator('.run-notes .notice', { hasText: /^The run was stopped\./ }).waitFor();
  await close();
});

test('dropped connections lose and repeat nothing', async () => {
  const { id } = await start('Count, and drop the connection');
  const { page } = await world.open(`#/run/${id}`);
  await page.locator('.facts .status.done').waitFor({ timeout: 30_000 });
  await until(async () => (await rows(page).count()) >= 30, 'all rows');
  const seen = new Set();
  await page.locator('.wf').focus();
  await page.keyboard.press('Home');
  const selected = () => page.locator('.wf-row[aria-selected="true"]').getAttribute('data-key');
  await until(async () => (await selected()) === '1', 'the first row is selected');
  for (let last = await selected(); seen.add(last).size < 31; last = await selected()) {
    await page.keyboard.press('ArrowDown');
    await until(async () => (await selected()) !== last, `the row after ${last}`);
  }
  for (let step = 1; step <= 15; step += 1) assert.ok(seen.has(`${step}`) && seen.has(`${step}.1`), `step ${step}`);
  assert.equal(seen.size, 31);
  await page.close();
});

test('a lost connection shows a quiet banner, and the page resumes', async () => {
  const { id } = await start('Count, but do not lose it: drop');
  const { page } = await world.open(`#/run/${id}`);
  await rows(page).first().waitFor();
  const before = await page.locator('.run-bar').boundingBox();
  await fetch(`${world.url}/mock/offline?ms=2500`);
  await page.locator('.banner', { hasText: 'Connection lost' }).waitFor();
  assert.deepEqual(await page.locator('.run-bar').boundingBox(), before, 'the banner moves nothing');
  await page.locator('.facts .status.done').waitFor({ timeout: 30_000 });
  await page.locator('.banner').waitFor({ state: 'hidden' });
  await until(async () => (await rows(page).count()) >= 30, 'all rows');
  await page.close();
});

test('a run of 10,000 steps scrolls smoothly', async () => {
  const run = world.find('10000');
  const { page, close } = await world.open(`#/run/${run.id}`);
  await until(() => page.evaluate(() => Number(document.querySelector('.wf')?.getAttribute('aria-rowcount')) === 20_001), 'all rows', 20_000);
  // What makes scrolling smooth: each frame has few rows, and draws only those that came into view.
  const most = await page.evaluate(() => new Promise((resolve) => {
    const scroller = /** @type {HTMLElement} */ (document.querySelector('.wf'));
    let drawn = 0;
    let added = 0;
    new MutationObserver((changes) => {
      added = Math.max(added, changes.reduce((sum, change) => sum + change.addedNodes.length, 0));
    }).observe(scroller, { childList: true, subtree: true });
    let frames = 0;
    const frame = () => {
      drawn = Math.max(drawn, scroller.querySelectorAll('.wf-row').length);
      scroller.scrollTop += 900;
      frames += 1;
      if (frames < 90) requestAnimationFrame(frame);
      else resolve({ drawn, added, top: scroller.scrollTop });
    };
    requestAnimationFrame(frame);
  }));
  assert.ok(most.drawn > 0 && most.drawn < 80, `${most.drawn} rows are drawn`);
  assert.ok(most.added < 1000, `${most.added} elements are added in a frame`);
  assert.ok(most.top > 50_000, `scrolled to ${most.top}`);
  await page.locator('.wf').focus();
  await page.keyboard.press('End');
  await page.locator('.inspector header h2', { hasText: 'answer' }).waitFor();
  await close();
});

test('a host call has its time in the timeline', async () => {
  const { page, close } = await world.open(`#/run/${world.find('Which region').id}/1/1/1`);
  const row = page.locator('.wf-row.host', { hasText: 'fs.read' }).first();
  await row.locator('.wf-bar.host:not([hidden])').waitFor();
  assert.equal(await row.locator('.wf-time').innerText(), '1 ms');
  await close();
});

test('the timeline has notes and artifacts, and saves their data', async () => {
  const { page, close } = await world.open(`#/run/${world.find('each artifact').id}/1/1`);
  await page.locator('.wf-row.note', { hasText: 'house_style.prompt added a note' }).waitFor();
  await page.locator('.wf-row.note', { hasText: 'calendar.today failed' }).click();
  await page.getByRole('tabpanel').getByText('the calendar <b>does not</b> respond').waitFor();
  await page.locator('.wf-row.note', { hasText: 'artifact ../chart ⟨U+202E⟩<b>.svg' }).click();
  const panel = page.getByRole('tabpanel');
  assert.match(await panel.locator('.artifacts li').nth(1).innerText(), /chart ⟨U\+202E⟩<b>\.svg/);
  const saved = page.waitForEvent('download');
  await panel.getByRole('button', { name: 'Save sums.csv' }).last().click();
  const file = await saved;
  assert.equal(file.suggestedFilename(), 'sums.csv');
  assert.equal(readFileSync(await file.path(), 'utf8'), 'region,units\neast,1809\n');
  await close();
});

test('a changed file of a session shows its changes', async () => {
  const { page, close } = await world.open('#/sessions/q3-numbers');
  await page.locator('.files .badge', { hasText: 'changed' }).waitFor();
  await page.getByRole('button', { name: 'sales.csv', exact: true }).click();
  await page.locator('dialog .diff-line.removed', { hasText: 'north,11' }).waitFor();
  await page.locator('dialog .diff-line.added', { hasText: 'north,12' }).waitFor();
  await close();
});

test('changes of a session are applied to the folder, and conflicts are named', async () => {
  await world.api('PUT', '/api/sessions/q3-numbers/files/report.md', { bytes: new Blob(['# Report']) });
  const { page, close } = await world.open('#/sessions/q3-numbers');
  await page.getByRole('button', { name: 'Apply to folder' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Apply', exact: true }).click();
  await page.locator('.files .notice.good', { hasText: 'applied to the folder' }).waitFor();
  await page.locator('.files .notice.attention li', { hasText: 'sales.csv: another process has changed the file' }).waitFor();
  await page.getByRole('button', { name: 'report.md', exact: true }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'sales.csv', exact: true }).waitFor();
  await close();
});

test('the list of runs is live and does not jump', async () => {
  const { page, close } = await world.open('#/runs');
  const size = { width: 1280, height: 500 };
  await page.setViewportSize(size);
  await page.locator('table.runs tbody tr').first().waitFor();
  await start('Say hello at the top');
  // A row has its final height once its run has ended.
  await page.locator('table.runs tr', { hasText: 'Say hello at the top' }).locator('.status.done').waitFor();
  await page.locator('w-runs .scroll').evaluate((element) => { element.scrollTop = 300; });
  const top = () => page.locator('table.runs tr', { hasText: 'Say hello at the top' }).evaluate((element) => element.getBoundingClientRect().top);
  const before = await top();
  await start('Say hello while reading');
  await page.getByRole('button', { name: 'Show 1 new run' }).waitFor();
  assert.ok(Math.abs(await top() - before) < 4, 'what one reads does not move by a row');
  await page.getByRole('button', { name: 'Show 1 new run' }).click();
  await page.locator('table.runs tr', { hasText: 'Say hello while reading' }).waitFor();
  await close();
});

test('the lists are not polled, and are read again after a lost connection', async () => {
  const { page, close } = await world.open('#/runs');
  await page.locator('table.runs tbody tr').first().waitFor();
  const { calls } = world.server.state;
  await until(() => calls.includes('GET /api/runs/stream'), 'a stream');
  const listed = () => calls.filter((one) => one === 'GET /api/runs').length;
  const before = listed();
  await start('Say hello without a poll');
  const row = page.locator('table.runs tr', { hasText: 'Say hello without a poll' });
  await row.locator('.status.done').waitFor();
  assert.equal(listed(), before, 'a change needs no list');
  await fetch(`${world.url}/mock/offline?ms=300`);
  await until(() => listed() > before, 'the lists are read again');
  await page.close();
});

test('runs are filtered, searched and sorted', async () => {
  const { page, close } = await world.open('#/runs?status=failed');
  await page.locator('table.runs tr', { hasText: 'Fetch the page that will fail' }).waitFor();
  await until(async () => (await page.locator('table.runs tbody tr').count()) === 1, 'only the failed run');
  await page.getByLabel('Status').selectOption('');
  await page.getByLabel('Search runs').fill('person 7');
  await until(async () => (await page.locator('table.runs tbody tr').count()) === 1, 'one row');
  await page.getByLabel('Search runs').fill('no such text');
  await page.getByText('No run matches').waitFor();
  await page.getByText('Remove a filter.', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Remove all filters' }).click();
  await page.getByRole('button', { name: 'Steps' }).click();
  await until(async () => (await page.locator('table.runs tbody tr').first().innerText()).includes('10,000'), 'most steps first');
  await page.locator('.called', { hasText: 'kv_incr ×' }).first().waitFor();
  await close();
});

test('a run that failed shows its failed request, and is sent again', async () => {
  const run = world.find('will fail');
  const { page, close } = await world.open(`#/run/${run.id}`);
  await rows(page).filter({ hasText: 'the model did not respond' }).locator('.wf-bar.failed').waitFor();
  await page.locator('.run-notes .notice.bad', { hasText: '503' }).getByRole('button', { name: 'Retry' }).click();
  await page.waitForURL((url) => url.hash.startsWith('#/run/') && !url.hash.includes(run.id));
  const again = world.find('will fail');
  assert.deepEqual([again.prompt, again.session_id], [run.prompt, run.session_id]);
  await close();
});
