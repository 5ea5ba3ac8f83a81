// Takes a screenshot of each view: `node browser/shots.js [NAME…]`, into the folder `shots`.
import { mkdirSync } from 'node:fs';
import { start } from '../mock/server.js';
import { launch, openPage } from './browser.js';

const wanted = process.argv.slice(2);
const server = await start();
const context = await launch();
const { page, problems } = await openPage(context, server.url);
mkdirSync(new URL('../shots', import.meta.url), { recursive: true });
const find = (text) => [...server.world.runs.values()].find((run) => run.prompt.includes(text)).id;
const VIEWS = {
  chat: '#/chat', session: '#/chat/q3-numbers', run: `#/run/${find('Which region')}/2/1`, parallel: `#/run/${find('parallel')}`, long: `#/run/${find('10000')}/5000`, parked: `#/run/${find('approve')}`,
  runs: '#/runs', approvals: '#/approvals', catalog: '#/catalog', program: '#/catalog/kv_incr', sandbox: '#/sandbox', sessions: '#/sessions', files: '#/sessions/q3-numbers', settings: '#/settings',
};
await page.goto(`${server.url}/#token=${server.token}`);
for (const [name, hash] of Object.entries(VIEWS)) {
  if (wanted.length > 0 && !wanted.some((one) => name === one || one.startsWith(`${name}-`))) continue;
  for (const [suffix, width, height, theme] of [['light', 1280, 820, 'light'], ['dark', 1280, 820, 'dark'], ['phone', 360, 740, 'light'], ['tablet', 820, 900, 'light']]) {
    if (wanted.length > 0 && !wanted.includes(name) && !wanted.includes(`${name}-${suffix}`)) continue;
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: theme });
    await page.goto(`${server.url}/${hash}`);
    await page.reload();
    await page.waitForTimeout(name === 'long' ? 1500 : 700);
    await page.screenshot({ path: new URL(`../shots/${name}-${suffix}.png`, import.meta.url).pathname });
  }
}
if (problems.length > 0) console.log(problems.join('\n'));
await context.close();
await server.stop();
