// A server and a browser for one file of tests. With WATTLE_URL and WATTLE_TOKEN, tests of the
// contract run against that server; otherwise, and for all tests of scripts, against the mock.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { start } from '../mock/server.js';
import { launch, openPage } from './browser.js';

export function setup({ mockOnly = false } = {}) {
  const world = { url: '', token: '', server: null, context: null, isMock: false };
  before(async () => {
    if (!mockOnly && process.env.WATTLE_URL) {
      Object.assign(world, { url: process.env.WATTLE_URL.replace(/\/$/, ''), token: process.env.WATTLE_TOKEN ?? '' });
    } else {
      world.server = await start();
      Object.assign(world, { url: world.server.url, token: world.server.token, isMock: true });
    }
    world.context = await launch();
  });
  after(async () => {
    await world.context?.close();
    await world.server?.stop();
  });
  world.open = async (hash = '', { size = { width: 1280, height: 820 }, signedIn = true } = {}) => {
    const opened = await openPage(world.context, world.url);
    await opened.page.setViewportSize(size);
    opened.page.setDefaultTimeout(15_000);
    if (!signedIn) {
      // The browser keeps the token of earlier tests.
      await opened.page.goto(world.url);
      await opened.page.evaluate(() => localStorage.clear());
    }
    await opened.page.goto(`${world.url}/${signedIn ? `#token=${encodeURIComponent(world.token)}` : ''}`);
    if (signedIn) await opened.page.waitForSelector('.rail');
    if (hash) await opened.page.evaluate((address) => { location.hash = address; }, hash);
    opened.close = async () => {
      await opened.page.close();
      assert.deepEqual(opened.problems, [], 'the console has no errors');
      assert.deepEqual(opened.foreign, [], 'no request leaves for another host');
    };
    return opened;
  };
  world.api = async (method, path, body) => {
    const response = await fetch(world.url + path, { method, headers: { authorization: `Bearer ${world.token}`, ...(body ? { 'content-type': 'application/json' } : {}) }, body: body ? JSON.stringify(body) : undefined });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text === '' ? {} : JSON.parse(text);
  };
  /** The newest run of the mock whose message contains a text. */
  world.find = (text) => [...world.server.world.runs.values()].reverse().find((run) => run.prompt.includes(text));
  return world;
}

/** Waits until a function returns something true. */
export async function until(check, what, ms = 10_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) assert.fail(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
