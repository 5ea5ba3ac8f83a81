// axe finds no violation on any view, in light and dark, on a phone, a tablet and a desktop.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'node:test';
import { setup } from '../browser/setup.js';

const world = setup();
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const WIDTHS = [360, 820, 1280];

async function violations(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations: found } = await /** @type {any} */ (globalThis).axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] });
    return found.map((one) => `${one.impact} ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.any[0]?.message ?? node.all[0]?.message ?? ''}`).join(' | ')}`);
  });
}

async function views() {
  const { runs } = await world.api('GET', '/api/runs?limit=50');
  const run = runs.find((one) => one.steps > 0 && one.steps < 100) ?? runs[0];
  const { programs } = await world.api('GET', '/api/catalog');
  const { sessions } = await world.api('GET', '/api/sessions?limit=50');
  const more = runs.filter((one) => one.status === 'parked' || one.status === 'failed').slice(0, 3).map((one) => `#/run/${one.id}`);
  return ['#/chat', `#/chat/${run?.session_id}`, `#/run/${run?.id}`, `#/run/${run?.id}/1/1`, ...more, '#/runs', '#/runs?status=blocked', '#/approvals', '#/catalog', `#/catalog/${programs.find((one) => one.args.length > 0).name}`, '#/sandbox', '#/sessions', `#/sessions/${sessions[0]?.id}`, '#/agents', '#/memory', '#/usage', '#/settings'];
}

for (const scheme of ['light', 'dark']) {
  test(`every view, ${scheme}`, async () => {
    const { page, close } = await world.open();
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    /** Each violation, with one of the views that have it. */
    const found = new Map();
    for (const hash of await views()) {
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        await page.evaluate((address) => { location.hash = address; }, hash);
        await page.waitForTimeout(350);
        for (const violation of await violations(page)) found.set(violation, `${hash} ${width}`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (overflow > 0) found.set(`${hash} ${width}`, `${overflow} pixels too wide`);
      }
    }
    assert.deepEqual([...found], []);
    await close();
  });
}

test('the login, the palette and the dialogs', async () => {
  const { page, close } = await world.open();
  const found = [];
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    for (const key of ['Control+k', '?']) {
      await page.evaluate(() => { /** @type {HTMLElement} */ (document.activeElement)?.blur(); });
      await page.keyboard.press(key);
      await page.locator('dialog').waitFor();
      found.push(...await violations(page));
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
    }
  }
  await close();
  const login = await world.open('', { signedIn: false });
  found.push(...await violations(login.page));
  await login.page.close();
  assert.deepEqual(found, []);
});
