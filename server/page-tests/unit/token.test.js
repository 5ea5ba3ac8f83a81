import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';

const stored = new Map();
const ofTab = new Map();
const storage = (values) => ({ getItem: (key) => values.get(key) ?? null, setItem: (key, value) => values.set(key, value), removeItem: (key) => values.delete(key) });
const address = { pathname: '/', search: '', hash: '' };
const replacements = [];
Object.assign(globalThis, {
  location: address,
  history: {
    replaceState: (_state, _title, url) => {
      replacements.push(url);
      address.hash = /#.*/.exec(url)?.[0] ?? '';
    },
  },
  localStorage: storage(stored),
  sessionStorage: storage(ofTab),
});
const { forgetToken, getToken, setToken, takeTokenFromAddress } = await import('../../page/js/token.js');

/** Opens a link; returns how often the user was asked and how often the token was replaced. */
async function open(hash, answer) {
  address.hash = hash;
  const counts = { asked: 0, replaced: 0 };
  takeTokenFromAddress(async () => {
    counts.asked += 1;
    return answer;
  }, () => { counts.replaced += 1; });
  assert.doesNotMatch(address.hash, /token/, 'the token leaves the address before anything else');
  await new Promise((resolve) => setImmediate(resolve));
  return counts;
}

beforeEach(() => {
  stored.clear();
  ofTab.clear();
  replacements.length = 0;
});

test('a token is kept for the browser or the tab, and its replacement like it', async () => {
  setToken('mine');
  assert.deepEqual([[...stored.values()], [...ofTab.values()]], [['mine'], []]);
  setToken('mine', false);
  await open('#token=theirs', true);
  assert.deepEqual([[...stored.values()], [...ofTab.values()]], [[], ['theirs']]);
  forgetToken();
  assert.equal(getToken(), '');
});

test('a tab without a token takes that of the address without a question', async () => {
  assert.deepEqual(await open('#token=a%2Bb&/runs'), { asked: 0, replaced: 0 });
  assert.equal(getToken(), 'a+b');
  assert.equal(address.hash, '#/runs');
  stored.clear();
  await open('#token=100%');
  assert.equal(getToken(), '100%');
});

test('the same token again is no question', async () => {
  setToken('mine');
  assert.deepEqual(await open('#token=mine'), { asked: 0, replaced: 0 });
  assert.equal(getToken(), 'mine');
});

test('another token replaces the one of the tab only if the user agrees', async () => {
  setToken('mine');
  assert.deepEqual(await open('#token=theirs', false), { asked: 1, replaced: 0 });
  assert.equal(getToken(), 'mine');
  assert.deepEqual(await open('#token=theirs&/chat', true), { asked: 1, replaced: 1 });
  assert.equal(getToken(), 'theirs');
  assert.equal(address.hash, '#/chat');
});

test('while the user is asked, the token stays and further links are ignored', async () => {
  setToken('mine');
  let agree = (/** @type {boolean} */ _answer) => {};
  address.hash = '#token=theirs';
  takeTokenFromAddress(() => new Promise((resolve) => { agree = resolve; }), () => {});
  assert.equal(getToken(), 'mine');
  assert.deepEqual(await open('#token=others', true), { asked: 0, replaced: 0 });
  agree(true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(getToken(), 'theirs');
});

test('an empty token changes nothing, and other addresses stay', async () => {
  setToken('mine');
  assert.deepEqual(await open('#token='), { asked: 0, replaced: 0 });
  assert.equal(getToken(), 'mine');
  replacements.length = 0;
  await open('#/runs?status=failed');
  assert.deepEqual(replacements, []);
});
