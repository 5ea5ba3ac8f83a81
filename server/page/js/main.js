/**
 * Starts the page: takes the token, shows the login or the frame, and opens the view of each
 * address.
 */

import { live, session } from './app.js';
import { fill, h } from './dom.js';
import { installKeys } from './keys.js';
import { confirmAction, openHelp } from './parts/dialogs.js';
import './parts/banner.js';
import { announce, dismissOld, notificationRegions, notifyError } from './parts/notify.js';
import { openPalette } from './parts/palette.js';
import { Rail } from './parts/rail.js';
import { navigate, parseRoute } from './router.js';
import { setTitle } from './title.js';
import { getToken, takeTokenFromAddress, watchToken } from './token.js';
import { View } from './view.js';
import { createLogin } from './views/login.js';

/** @type {Record<string, () => Promise<unknown>>} The module of each view, loaded when it is first opened. */
const VIEWS = {
  chat: () => import('./views/chat.js'),
  run: () => import('./views/run.js'),
  runs: () => import('./views/runs.js'),
  approvals: () => import('./views/approvals.js'),
  catalog: () => import('./views/catalog.js'),
  sandbox: () => import('./views/sandbox.js'),
  sessions: () => import('./views/sessions.js'),
  agents: () => import('./views/agents.js'),
  memory: () => import('./views/memory.js'),
  usage: () => import('./views/usage.js'),
  settings: () => import('./views/settings.js'),
};

const app = /** @type {HTMLElement} */ (document.getElementById('app'));
const main = h('main', { class: 'main', id: 'main', tabindex: '-1' });
let isSignedIn = false;
/** The number of the newest navigation: an older one that is still loading does nothing. */
let latest = 0;

takeToken();
document.body.append(...notificationRegions());
session.addEventListener('signed-out', showLogin);
watchToken(() => location.reload());
globalThis.addEventListener('hashchange', () => {
  // A dialog and a message belong to the view that opened them.
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  dismissOld();
  const before = getToken();
  takeToken();
  if (!isSignedIn && getToken() !== before) showFrame();
  else if (isSignedIn) void showRoute();
});
installKeys({ openPalette: () => { if (isSignedIn) openPalette(); }, openHelp, navigate });

if (getToken()) showFrame();
else showLogin();

function takeToken() {
  takeTokenFromAddress(
    () => confirmAction('Replace the token of this browser',
      'A link signs this browser in with another token. Whoever has that token can read what you send then.',
      'Replace'),
    // What the page has loaded belongs to the token before.
    () => location.reload(),
  );
}

function showLogin() {
  if (!isSignedIn && app.querySelector('.login')) return;
  isSignedIn = false;
  live.stop();
  setTitle('Sign in');
  app.className = 'app alone';
  fill(app, createLogin(showFrame));
  app.querySelector('input')?.focus();
}

function showFrame() {
  isSignedIn = true;
  app.className = 'app';
  fill(main, document.createElement('w-banner'));
  const skip = h('button', { class: 'skip', onclick: () => main.focus() }, 'Skip to the content');
  fill(app, skip, document.createElement('w-rail'), main);
  live.start();
  void showRoute();
}

async function showRoute() {
  latest += 1;
  const turn = latest;
  const route = parseRoute(location.hash);
  const name = route.view in VIEWS ? route.view : 'chat';
  const tag = `w-${name}`;
  const rail = app.querySelector('w-rail');
  if (rail instanceof Rail) rail.select({ ...route, view: name });
  const current = main.querySelector('.view');
  if (current instanceof View && current.localName === tag) {
    current.route = route;
    current.open(route);
    return;
  }
  try {
    await VIEWS[name]?.();
  } catch (error) {
    notifyError(error);
    return;
  }
  if (turn !== latest || !isSignedIn) return;
  const view = document.createElement(tag);
  if (view instanceof View) view.route = route;
  main.querySelector('.view')?.remove();
  main.prepend(view);
  setTimeout(() => announce(document.title), 100);
}
