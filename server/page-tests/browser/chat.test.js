// The chat, approvals and hostile text, with the scripts of the mock.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setup, until } from './setup.js';

const world = setup({ mockOnly: true });
const message = (page) => page.getByRole('textbox', { name: 'Message' });

async function send(page, text) {
  await message(page).fill(text);
  await page.keyboard.press('Enter');
  await page.locator('.bubble', { hasText: text }).waitFor();
}

test('an answer streams, steps appear, and nothing shifts by itself', async () => {
  const { page, close } = await world.open('#/chat');
  await send(page, 'Which region sold most in sales.csv today?');
  await page.locator('.live-status .running', { hasText: 'thinking' }).waitFor();
  await page.locator('.draft-call', { hasText: 'ToolCall' }).waitFor();
  await page.locator('.step-list code', { hasText: 'csv_to_json' }).waitFor();
  await page.locator('.step-list .badge', { hasText: 'repaired' }).waitFor();
  assert.match(await page.locator('.step-list li').nth(2).innerText(), /Sum the units[\s\S]*Attempt 1 failed: line 4, column 4: unknown function map\.increment[\s\S]*The function is called[\s\S]*program, 6 lines/);
  await page.locator('.draft table').waitFor();
  await page.locator('.answer table').waitFor();
  await page.locator('.turn-actions', { hasText: 'Copy' }).waitFor();
  await until(async () => (await page.locator('.draft:not([hidden])').count()) === 0, 'the draft goes away');
  assert.match(await page.locator('.answer').innerText(), /East sold most/);
  await close();
});

test('the layout of a chat that is opened does not shift', async () => {
  const { page, close } = await world.open('#/chat/q3-numbers');
  await page.reload();
  const shift = await page.evaluate(() => new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += /** @type {any} */ (entry).value; }).observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => resolve(sum), 1500);
  }));
  assert.ok(shift < 0.02, `layout shift of ${shift}`);
  await close();
});

test('a chat survives a reload while it runs', async () => {
  const { page, close } = await world.open('#/chat');
  await send(page, 'Which region sold most in sales.csv after a reload?');
  await page.waitForURL(/#\/chat\/.+/);
  await page.reload();
  await page.locator('.answer table').waitFor();
  assert.equal(await page.locator('.bubble').count(), 1);
  await close();
});

test('attachments become files of the session', async () => {
  const { page, close } = await world.open('#/chat');
  await page.locator('.composer input[type="file"]').setInputFiles([{ name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes') }, { name: 'blob.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([255, 0, 254]) }]);
  await page.locator('.chips li', { hasText: 'blob.bin' }).waitFor();
  await send(page, 'Say hello to the files');
  await page.waitForURL(/#\/chat\/.+/);
  const session = decodeURIComponent(page.url().split('#/chat/')[1]);
  const { files } = await world.api('GET', `/api/sessions/${session}/files`);
  assert.deepEqual(files.map((file) => file.path).sort(), ['blob.bin', 'notes.md']);
  await until(async () => (await page.locator('.composer .chips li').count()) === 0, 'the composer is empty');
  await page.reload();
  await page.locator('.ask .chips a').nth(1).waitFor();
  assert.deepEqual(await page.locator('.ask .chips a').allInnerTexts(), ['notes.md', 'blob.bin']);
  assert.equal(await page.locator('.bubble').innerText(), 'Say hello to the files');
  assert.match(world.find('to the files').prompt, /Attached files: `notes\.md`, `blob\.bin`$/, 'the model knows of them');
  await close();
});

test('the arrow key edits the last message in a fork', async () => {
  const { page, close } = await world.open('#/chat/greetings-1');
  await page.locator('.bubble').first().waitFor();
  await message(page).focus();
  await page.keyboard.press('ArrowUp');
  await until(async () => /Say hello to person/.test(await message(page).inputValue()), 'the last message is edited');
  await page.locator('.composer.editing').waitFor();
  await message(page).fill('Say hello to nobody');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => !url.hash.includes('greetings-1'));
  await page.locator('.bubble', { hasText: 'Say hello to nobody' }).waitFor();
  assert.equal(world.find('nobody').forkedFrom.step, 0);
  await close();
});

test('approvals have a badge and a title, and the keys answer them', async () => {
  const { page, close } = await world.open('#/approvals');
  await page.locator('.approval .question', { hasText: 'http.post' }).waitFor();
  await page.locator('.approval li.marked', { hasText: 'http.post' }).waitFor();
  await until(async () => /^\(2\)/.test(await page.title()), 'the title counts');
  await page.locator('.rail .badge', { hasText: /^2/ }).waitFor();
  await page.keyboard.press('y');
  await until(async () => (await page.locator('.approval .question').count()) === 0, 'the card goes away');
  await until(() => world.find('after I approve').status === 'done', 'the run goes on');
  assert.equal(world.find('after I approve').result, 'The report was sent.');
  await page.getByRole('button', { name: 'Release the run' }).click();
  await page.getByText('Nothing waits for you').waitFor();
  assert.equal(await page.locator('.command code').innerText(), 'ask = ["http"]');
  await until(async () => /^Approvals/.test(await page.title()), 'the title is plain');
  await close();
});

test('a denial in the chat has a reason', async () => {
  const { page, close } = await world.open('#/chat');
  await send(page, 'Send it, approve later');
  await page.locator('.approval').waitFor();
  await page.getByRole('button', { name: /^Deny/ }).click();
  await page.getByLabel('Reason (optional)').fill('not on Sundays');
  await page.keyboard.press('Enter');
  await page.locator('.answer', { hasText: 'was denied' }).waitFor();
  assert.equal(world.find('approve later').lastReason, 'not on Sundays');
  await until(async () => (await page.locator('.approval').count()) === 0, 'the card goes away');
  await close();
});

test('artifacts are under the answer, in a new chat and in one that is opened', async () => {
  const { page, close } = await world.open('#/chat');
  await send(page, 'Leave an artifact here');
  await page.locator('.reply .artifacts li', { hasText: 'sums.csv' }).waitFor();
  assert.equal(await page.locator('.reply .artifacts li').count(), 2);
  await page.reload();
  const saved = page.waitForEvent('download');
  await page.locator('.reply .artifacts').getByRole('button', { name: 'Save sums.csv' }).click();
  assert.equal((await saved).suggestedFilename(), 'sums.csv');
  await close();
});

test('a failed run says why', async () => {
  const { page, close } = await world.open('#/chat');
  await send(page, 'Please fail');
  await page.locator('.reply .notice.bad', { hasText: '503 Service Unavailable' }).getByRole('button', { name: 'Retry' }).click();
  await page.locator('.bubble', { hasText: 'Please fail' }).nth(1).waitFor();
  await close();
});

test('Esc stops the run, not the message that waits for it', async () => {
  const { page, close } = await world.open('#/chat');
  await send(page, 'A slow job in the chat');
  await page.locator('.step-list code', { hasText: 'shell' }).waitFor();
  await send(page, 'Say hello afterwards');
  await page.locator('.turn').nth(1).locator('.status.queued').waitFor();
  await page.locator('.chats a', { hasText: 'A slow job in the chat' }).waitFor();
  await message(page).focus();
  await page.keyboard.press('Escape');
  await page.locator('.turn').first().locator('.notice', { hasText: /^The run was stopped\./ }).waitFor();
  await page.locator('.turn').nth(1).locator('.answer', { hasText: 'Hello!' }).waitFor();
  await close();
});

test('what was written before a lost connection is not doubled after it', async () => {
  const { page } = await world.open('#/chat');
  await send(page, 'Please hold');
  const draft = page.locator('.draft');
  await until(async () => (await draft.innerText()) === 'The words before the break', 'the whole draft');
  const { calls } = world.server.state;
  const streams = () => calls.filter((one) => /^GET .api.run.+stream$/.test(one)).length;
  const before = streams();
  await fetch(`${world.url}/mock/offline?ms=200`);
  await until(() => streams() > before, 'the stream is back');
  await page.waitForTimeout(300);
  assert.equal(await draft.innerText(), 'The words before the break');
  await page.keyboard.press('Escape');
  await page.locator('.notice', { hasText: 'The run was stopped' }).waitFor();
  await page.close();
});

test('a draft and its files stay with their chat', async () => {
  const { page, close } = await world.open('#/chat');
  const go = (hash) => page.evaluate((address) => { location.hash = address; }, hash);
  await message(page).fill('half a sentence');
  await page.locator('.composer input[type="file"]').setInputFiles([{ name: 'kept.txt', mimeType: 'text/plain', buffer: Buffer.from('x') }]);
  await page.locator('.composer .chips li', { hasText: 'kept.txt' }).waitFor();
  await go('#/chat/q3-numbers');
  await page.locator('.bubble').first().waitFor();
  assert.equal(await message(page).inputValue(), '');
  assert.equal(await page.locator('.composer .chips li').count(), 0);
  await message(page).fill('for the numbers');
  await go('#/runs');
  await page.locator('w-runs .bar').waitFor();
  await go('#/chat');
  await page.locator('.composer .chips li', { hasText: 'kept.txt' }).waitFor();
  assert.equal(await message(page).inputValue(), 'half a sentence');
  await go('#/chat/q3-numbers');
  await page.reload();
  await until(async () => (await message(page).inputValue()) === 'for the numbers', 'the draft of the chat');
  await close();
});

test('a server without a model says what is missing', async () => {
  world.server.world.modelProblem = 'no model is set up: `wattle init` chooses one';
  const { page, close } = await world.open('#/chat');
  await page.locator('.model-problem .notice', { hasText: 'no model is set up' }).locator('code', { hasText: 'wattle init' }).waitFor();
  await page.evaluate(() => { location.hash = '#/settings'; });
  await page.locator('.notice', { hasText: 'no model is set up' }).waitFor();
  world.server.world.modelProblem = null;
  await close();
});

test('messages of the page leave the composer free, and go with their view', async () => {
  const { page, close } = await world.open('#/chat/q3-numbers');
  await page.getByRole('button', { name: 'Copy session id' }).click();
  const toast = page.locator('.toast');
  const { y, height } = await toast.boundingBox();
  assert.ok(y + height < (await page.locator('.composer').boundingBox()).y - 200);
  await page.waitForTimeout(600);
  await page.evaluate(() => { location.hash = '#/runs'; });
  await toast.waitFor({ state: 'detached', timeout: 1500 });
  await close();
});

test('on a phone the chats are one button away', async () => {
  const { page, close } = await world.open('#/chat', { size: { width: 400, height: 800 } });
  await page.getByRole('button', { name: 'Chats' }).click();
  await page.locator('dialog .chats a').nth(1).click();
  await page.waitForURL(/#\/chat\/.+/);
  await page.locator('dialog').waitFor({ state: 'detached' });
  await close();
});

test('a message goes to the agent that was chosen', async () => {
  const { page, close } = await world.open('#/agents');
  await page.getByRole('region', { name: 'clerk' }).getByRole('link', { name: 'Chat' }).click();
  await until(async () => (await page.getByLabel('Agent', { exact: true }).inputValue()) === 'clerk', 'the agent is chosen');
  await send(page, 'Say hello, clerk');
  await page.waitForURL(/#\/chat\/.+/);
  assert.equal(world.find('hello, clerk').agent, 'clerk');
  await close();
});

test('a program without front matter is saved after a question', async () => {
  const { page, close } = await world.open('#/sandbox');
  await page.getByLabel('Program', { exact: true }).fill('(ret (arg 1))');
  await page.getByRole('button', { name: 'Save to catalog' }).click();
  await page.getByLabel('Name').fill('second');
  await page.getByLabel('What the program does, in one sentence').fill('Returns the "second" argument');
  await page.locator('dialog').getByRole('button', { name: 'Save' }).click();
  await page.waitForURL(/#\/catalog\/second/);
  assert.match(world.server.world.saved.get('second'), /^;;; name = "second"\n;;; description = "Returns the \\"second\\" argument"\n;;; \[\[args\]\][\s\S]*"arg2"[\s\S]*\n\n\(ret \(arg 1\)\)$/);
  await close();
});

test('hostile text stays text', async () => {
  const run = world.find('hostile');
  const { page, close } = await world.open('#/chat/hostile');
  let isAlert = false;
  page.on('dialog', () => { isAlert = true; });
  const answer = page.locator('.answer').first();
  await answer.waitFor();
  const text = await answer.innerText();
  assert.match(text, /⟨ESC⟩\[31mred/);
  assert.match(text, /⟨U\+202E⟩gnp\.exe/);
  assert.match(text, /<img src=x onerror=alert\(1\)>/);
  const links = await answer.locator('a').evaluateAll((all) => all.map((link) => [link.getAttribute('href'), link.getAttribute('rel')]));
  assert.deepEqual(links.map(([address]) => address), ['https://evil.example/x.png', 'https://example.org/']);
  assert.ok(links.every(([, rel]) => rel === 'noopener noreferrer nofollow'));
  assert.equal(await answer.locator('img, script').count(), 0);
  await page.evaluate((id) => { location.hash = `#/run/${id}/1/1`; }, run.id);
  await page.locator('.code-view', { hasText: '⟨U+202E⟩' }).waitFor();
  await page.getByRole('tab', { name: 'Result' }).click();
  await page.locator('.cut', { hasText: '⟨ESC⟩[2Jcleared ⟨BEL⟩' }).waitFor();
  assert.equal(isAlert, false);
  await close();
});

test('a diagnostic arrives after the last key, and its fix is applied', async () => {
  const { page, close } = await world.open('#/sandbox');
  const editor = page.getByLabel('Program', { exact: true });
  await editor.fill('(out (map.incr $m "k" 1))');
  await page.locator('.bar .badge', { hasText: 'no errors' }).waitFor();
  await editor.fill('(out (map.increment $m "k" 1))');
  await page.locator('.problems li', { hasText: 'unknown function' }).locator('code', { hasText: /^map\.increment$/ }).waitFor();
  await page.getByRole('button', { name: 'Apply the fix' }).click();
  await until(async () => (await editor.inputValue()) === '(out (map.incr $m "k" 1))', 'the fix is applied');
  await close();
});

test('a program runs with fixtures, and they must be JSON', async () => {
  const { page, close } = await world.open('#/sandbox');
  await page.getByLabel('Program', { exact: true }).fill('(out (fs.read "a.txt"))');
  await page.getByLabel('Files').selectOption('Fixtures');
  const fixtures = page.getByLabel('Fixtures');
  await fixtures.fill('{"files": {"a.txt": "from a fixture"}');
  await page.getByText('Fixtures are a JSON object.').waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  assert.equal(await fixtures.evaluate((element) => element === document.activeElement), true);
  await fixtures.fill('{"files": {"a.txt": "from a fixture"}}');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.output', { hasText: 'from a fixture' }).waitFor();
  await page.reload();
  assert.equal(await page.getByLabel('Fixtures').inputValue(), '{"files": {"a.txt": "from a fixture"}}');
  await close();
});

test('a new program is tested and saved to the catalog, and replaced only after a question', async () => {
  const { page, problems } = await world.open('#/sandbox?new=1');
  const editor = page.getByLabel('Program', { exact: true });
  const text = (name, body) => `;;; name = "${name}"\n;;; description = "x"\n;;; [[example]]\n;;; args = ["hello"]\n;;; results = ["HELLO"]\n\n(ret ${body})\n`;
  await editor.fill(text('shout', '(arg 0)'));
  await page.getByRole('button', { name: 'Test' }).click();
  await page.locator('.examples-run', { hasText: 'found "hello", expected "HELLO"' }).waitFor();
  await editor.fill(text('shout', '"HELLO"'));
  await page.getByRole('button', { name: 'Test' }).click();
  await page.locator('.examples-run', { hasText: 'passed' }).waitFor();
  await page.getByRole('button', { name: 'Save to catalog' }).click();
  await page.waitForURL(/#\/catalog\/shout/);
  await page.getByRole('link', { name: 'Open in sandbox' }).click();
  await editor.fill(text('shout', '"LOUD"'));
  await page.getByRole('button', { name: 'Save to catalog' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Keep' }).click();
  assert.match(world.server.world.saved.get('shout'), /HELLO"\)\n$/);
  await page.getByRole('button', { name: 'Save to catalog' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Replace' }).click();
  await page.waitForURL(/#\/catalog\/shout/);
  assert.match(world.server.world.saved.get('shout'), /LOUD/);
  assert.ok(problems.every((text) => text.includes('409')), problems.join());
  await page.close();
});

test('an example fills the form of a program', async () => {
  const { page, close } = await world.open('#/catalog/kv_incr');
  await page.locator('.example').nth(1).click();
  const inputs = page.locator('.program-form input');
  await until(async () => (await inputs.nth(0).inputValue()) === 'left' && (await inputs.nth(1).inputValue()) === '-2', 'the form has the values of the example');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.output', { hasText: 'kv_incr(left, -2)' }).waitFor();
  await page.locator('.program-form input').nth(1).fill('many');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('An integer, such as 42.').waitFor();
  await close();
});

test('on a phone the inspector is a sheet, and the rail a bar', async () => {
  const run = world.find('Which region sold most in sales.csv?');
  const { page, close } = await world.open(`#/run/${run.id}`, { size: { width: 360, height: 740 } });
  await page.locator('.wf-row').nth(1).waitFor();
  const rail = await page.locator('.rail').boundingBox();
  assert.ok(rail.y > 600 && rail.width === 360);
  await page.locator('.wf-row').nth(1).click();
  await page.locator('.inspector.open').waitFor();
  await page.getByRole('button', { name: 'Close the details' }).click();
  await until(async () => (await page.locator('.inspector.open').count()) === 0, 'the sheet closes');
  await page.getByRole('button', { name: 'More' }).click();
  await page.locator('dialog').getByRole('link', { name: 'Catalog' }).click();
  await page.waitForURL(/#\/catalog/);
  await close();
});
