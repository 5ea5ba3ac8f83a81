// Starts Chromium for the tests.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export async function launch() {
  return chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'wattle-page-')), {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, viewport: { width: 1280, height: 820 },
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/** Opens a page that records its console errors and every request to another host. */
export async function openPage(context, url) {
  const page = await context.newPage();
  const problems = [];
  const foreign = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    // A server may lack the list of host functions.
    if (message.location().url.endsWith('/api/language')) return;
    if (message.type() === 'error' || message.type() === 'warning') problems.push(`${message.text()} ${message.location().url}`);
  });
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith(url) && !address.startsWith('data:') && !address.startsWith('blob:')) foreign.push(address);
  });
  return { page, problems, foreign };
}
