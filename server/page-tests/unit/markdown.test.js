import assert from 'node:assert/strict';
import test from 'node:test';
import { parseMarkdown } from '../../page/js/markdown.js';
import { parseInline, safeHref } from '../../page/js/markdown-inline.js';

const kinds = (source) => parseMarkdown(source).map((block) => block.kind);
/** A short text of inline nodes: `strong(a)`. */
const show = (nodes) => nodes.map((node) => {
  if (node.kind === 'text') return node.text;
  if (node.kind === 'code') return `code(${node.text})`;
  if (node.kind === 'break') return '|';
  return `${node.kind}${node.href ? `<${node.href}>` : ''}(${show(node.children)})`;
}).join('');

test('blocks', () => {
  assert.deepEqual(kinds('# A\n\ntext\nmore\n\n- a\n- b\n\n> q\n\n```wat\n(ret 1)\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n---'), ['heading', 'paragraph', 'list', 'quote', 'code', 'table', 'rule']);
});

test('a fence that is not closed yet is code', () => {
  const [block] = parseMarkdown('```wat\n(out "# not a heading")');
  assert.deepEqual([block.kind, block.language, block.text], ['code', 'wat', '(out "# not a heading")']);
});

test('nested lists and tasks', () => {
  const [list] = parseMarkdown('1. one\n   - inner\n   - inner 2\n2. [x] done');
  assert.equal(list.ordered, true);
  assert.equal(list.items.length, 2);
  assert.equal(list.items[0].blocks[1].items.length, 2);
  assert.equal(list.items[1].checked, true);
});

test('inline marks', () => {
  assert.equal(show(parseInline('**a** *b* `c` ~~d~~ __e__')), 'strong(a) em(b) code(c) del(d) strong(e)');
  assert.equal(show(parseInline('snake_case_name and 2 * 3 * 4')), 'snake_case_name and 2 * 3 * 4');
  assert.equal(show(parseInline('**open')), '**open');
  assert.equal(show(parseInline('\\*plain\\*')), '*plain*');
});

test('marks within marks, and runs of three', () => {
  assert.equal(show(parseInline('***a***')), 'strong(em(a))');
  assert.equal(show(parseInline('___a___')), 'strong(em(a))');
  assert.equal(show(parseInline('**a *b***')), 'strong(a em(b))');
  assert.equal(show(parseInline('*a **b***')), 'em(a strong(b))');
  assert.equal(show(parseInline('*a **b** c* ~~d *e*~~')), 'em(a strong(b) c) del(d em(e))');
  assert.equal(show(parseInline('**a `*` b** and ![x')), 'strong(a code(*) b) and ![x');
  assert.equal(show(parseInline(`**${'a '.repeat(5000)}b**`)), `strong(${'a '.repeat(5000)}b)`);
});

test('code spans', () => {
  assert.equal(show(parseInline('`a` ``b ` c`` ` d ` `` ` `` `open')), 'code(a) code(b ` c) code(d) code(`) `open');
});

test('links, their titles and addresses in the text', () => {
  assert.equal(show(parseInline('[a [b] *c*](<http://d> "e") f')), 'link<http://d>(a [b] em(c)) f');
  assert.equal(show(parseInline('[a](http://b "c) [d](http://e)')), '[a](link<http://b>(http://b) "c) link<http://e>(d)');
  assert.equal(show(parseInline('*http://a.b* [http://c](http://d) <mailto:e@f>')), 'em(link<http://a.b>(http://a.b)) link<http://d>(link<http://c>(http://c)) link<mailto:e@f>(mailto:e@f)');
  assert.equal(show(parseInline('[a](http://b) [c\\](http://d) [e] (f)')), 'link<http://b>(a) [c](link<http://d>(http://d)) [e] (f)');
});

test('a list may begin with spaces', () => {
  for (const lead of ['', ' ', '  ', '   ']) {
    const [list] = parseMarkdown(`${lead}- a\n${lead}- b`);
    assert.deepEqual([list.kind, list.items[0].blocks[0].kind], ['list', 'paragraph'], JSON.stringify(lead));
  }
  assert.deepEqual(kinds('> text\n>   - a\n\n   1. b'), ['quote', 'list']);
});

test('headings may end with hashes, and a fence ends with one of its kind', () => {
  assert.equal(show(parseMarkdown('## a # b ##  ')[0].children), 'a # b');
  assert.equal(show(parseMarkdown('# C#')[0].children), 'C#');
  const [code] = parseMarkdown('````\n```\n~~~~\n`````\nend');
  assert.equal(code.text, '```\n~~~~');
  assert.deepEqual(kinds('a | b\n:- | -:\n1 | 2'), ['table']);
  assert.deepEqual(kinds('a | b\n:- | x\n1 | 2'), ['paragraph']);
});

test('HTML is text', () => {
  assert.equal(show(parseInline('<img src=x onerror=alert(1)>')), '<img src=x onerror=alert(1)>');
  assert.deepEqual(kinds('<script>alert(1)</script>'), ['paragraph']);
});

test('only http, https and mailto are links', () => {
  assert.equal(show(parseInline('[a](https://example.org/x)')), 'link<https://example.org/x>(a)');
  assert.equal(show(parseInline('see https://example.org/x.')), 'see link<https://example.org/x>(https://example.org/x).');
  for (const address of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\u0000script:alert(1)', 'data:text/html,x', 'vbscript:x', '//evil.example', '/x', 'http:/x', 'file:///etc/passwd', 'blob:https://x']) {
    assert.equal(safeHref(address), null, address);
    assert.ok(!show(parseInline(`[a](${address})`)).includes('link<'), address);
  }
  assert.equal(safeHref('mailto:ada@example.org'), 'mailto:ada@example.org');
});

test('an image is a link, never a request', () => {
  assert.equal(show(parseInline('![a](https://evil.example/x.png)')), '!link<https://evil.example/x.png>(a)'.slice(1));
});

test('hostile lengths end quickly', () => {
  const began = performance.now();
  for (const source of ['*'.repeat(50_000), '['.repeat(20_000), '> '.repeat(5000), '`'.repeat(3001) + 'a', '- '.repeat(4000), '|'.repeat(20_000), '**a'.repeat(10_000), '<'.repeat(20_000)]) parseMarkdown(source);
  assert.ok(performance.now() - began < 3000, `${performance.now() - began} ms`);
});
