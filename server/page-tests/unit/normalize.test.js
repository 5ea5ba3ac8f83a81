import assert from 'node:assert/strict';
import test from 'node:test';
import { toCheck, toReplay, toSettings, toToken } from '../../page/js/normalize.js';

test('settings with one scope and without lists', () => {
  const settings = toSettings({ version: '0.3.0', model: 'm', agent: 'default', tenant: 'default', scope: 'admin', exec: false });
  assert.deepEqual([settings.scopes, settings.models, settings.settings, settings.hasOneScope], [['admin'], ['m'], [], true]);
  assert.equal(toSettings({ scopes: ['read'], models: [], settings: [] }).hasOneScope, false);
});

test('a check of a program that is not valid', () => {
  assert.deepEqual(toCheck({ ok: false, diagnostics: [], authority: null, formatted: null }), { ok: false, diagnostics: [], authority: null, formatted: undefined });
});

test('tokens and replays', () => {
  assert.deepEqual(toToken({ name: 'ci', scope: 'read' }).scopes, ['read']);
  assert.deepEqual(toReplay({ same: false, turns: 3, difference: { step: 2, what: 'output', was: 'a', is: 'b' } }), { same: false, difference: 'step 2, output: recorded a, now b' });
  assert.equal(toReplay({ same: true, turns: 2 }).difference, '');
});
