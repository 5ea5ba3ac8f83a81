// The work for a text is in proportion to its length, whatever the text is. Steps are counted, since
// time depends on the machine.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseGrowing, parseMarkdown } from '../../page/js/markdown.js';
import { InlineParser } from '../../page/js/markdown-inline.js';
import { tokenize } from '../../page/js/tokens.js';

const LENGTH = 160_000;
/** The most steps for each character: the five marks, code and links search separately. */
const STEPS = 8;
const fill = (part, length = LENGTH) => part.repeat(Math.ceil(length / part.length)).slice(0, length);

const PATTERNS = [
  // Marks that never close, that close at once, and that close only at the end.
  ' _a', ' *a', ' ~~a', '**a ', '__a ', '***a ', ' ***a', '*a* ', '**a** ', '***a*** ', '~~a~~', '*a **b*** ', '*', '_', '~', '****a', '*_~~a ', ' **a *b', '_a __b ',
  // Brackets and targets.
  '[', ']', '![', '[]', '[](', '[](a', '[](a ', '[](a "x', '[](a "x" ', '[](<a', '[a](b)', '[a](http://b) ', '[[a](http://b)](http://c) ', '[*a](http://b)* ', '\\[', '[](       ',
  // Addresses.
  'h', 'http://', 'http:///', 'http://a', 'http://a ', '*http://x*a', '[http://x](http://y)a', 'http://\u200c/', 'http://a...', '<', '<http://a', '<http://a>', '<mailto:', 'http://a"',
  // Code, escapes and line ends.
  '`', '` ', '`a``b', '``a` ', '\\', '\\*', '  \n', '!', 'a',
];

test('each pattern takes few steps for each character', () => {
  for (const pattern of PATTERNS) {
    const parser = new InlineParser(fill(pattern));
    parser.parse();
    assert.ok(parser.steps <= STEPS * LENGTH, `${JSON.stringify(pattern)}: ${parser.steps / LENGTH} steps for each character`);
  }
});

test('texts with a special start or end take few steps, too', () => {
  const half = LENGTH / 2;
  const runs = Array.from({ length: 500 }, (_, i) => '`'.repeat(i + 1)).join(' ');
  const texts = [
    fill('[', half) + fill('](a', half), fill('[', half) + fill('](http://a)', half), fill('*a ', half) + fill('b*', half), fill('**a _b ', half) + fill('c_ d**', half),
    `[](a${' '.repeat(LENGTH)}`, `[](${' '.repeat(LENGTH)}`, `[](a "${fill('x', LENGTH)}`, `\` ${fill('a')}\``, `http://a${fill('.')}b`, `http://a${fill('.')}`, `${fill('*', half)}${fill('a*', half)}`,
    `*${fill('[a](http://b)')}*`, `${fill(' _a')}_`, runs, runs + runs,
  ];
  for (const text of texts) {
    const parser = new InlineParser(text);
    parser.parse();
    assert.ok(parser.steps <= STEPS * text.length, `${JSON.stringify(text.slice(0, 20))}: ${parser.steps / text.length} steps for each character`);
  }
});

test('random texts take few steps for each character', () => {
  const parts = ['a', ' ', '*', '**', '***', '_', '__', '~~', '`', '``', '[', ']', '](a', '](http://x)', '"', ')', 'http://y', '<http://q>', '<', '\\', '!', '\n'];
  let seed = 7;
  const random = (/** @type {number} */ n) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % n;
  };
  for (let round = 0; round < 300; round += 1) {
    // Few different parts make patterns, many make a mixture.
    const some = Array.from({ length: 2 + random(6) }, () => parts[random(parts.length)]);
    const text = Array.from({ length: 4000 }, () => some[random(some.length)]).join('');
    const parser = new InlineParser(text);
    parser.parse();
    assert.ok(parser.steps <= STEPS * text.length, `${JSON.stringify(some)}: ${parser.steps / text.length} steps for each character`);
  }
});

test('lines that made patterns backtrack are parsed at once', () => {
  // Each took from ten seconds to years. The limit is far from both.
  const began = performance.now();
  for (const line of [
    `# ${' '.repeat(LENGTH)}x`, `# a${fill(' #')}x`, `~~~${fill('~')}\``, `\`\`\`${fill('a')}\``, `\`\`\`${' '.repeat(LENGTH)}\``, `a|b\n-${' '.repeat(LENGTH)}x`, `a|b\n${fill('- ')}x`, `a|b\n${fill('|-')}x`,
    fill('- '), `${fill('- ')}x`, `-${' '.repeat(LENGTH)}x`, fill('> '), fill('1. '), fill('|'), `a|b\n-|-\n${fill('|')}`, fill('\\|'), `\`\`\`\n${fill('` ')}`, fill('a\n'), fill('a|\n'), fill('- a\n'), fill('> - '),
  ]) parseMarkdown(line);
  tokenize(fill("'\\u{"));
  tokenize(`'\\u{${fill('0')}`);
  assert.ok(performance.now() - began < 5000, `${performance.now() - began} ms`);
});

test('an answer that grows is not parsed again from its start', () => {
  const paragraphs = Array.from({ length: 400 }, (_, i) => `Paragraph ${i} has *some* text.\n\n`);
  let source = '';
  let parsed;
  for (const paragraph of paragraphs) {
    source += paragraph;
    const next = parseGrowing(source, parsed);
    assert.ok(source.length - next.offset < 200, `${source.length - next.offset} characters would be parsed again`);
    const settled = parsed ? parsed.blocks.slice(0, parsed.settled) : [];
    assert.ok(settled.every((block, i) => next.blocks[i] === block), 'settled blocks are the same objects');
    parsed = next;
  }
  assert.equal(parsed.blocks.length, 400);
});

test('a text that grows has the blocks of the whole text at each moment', () => {
  const whole = '# A\n\ntext\nmore | x\n---|---\n1 | 2\n\n- a\n\n  b\n- c\n\n\n1. x\n   - y\n\nz\n> q\n> r\n\n```wat\n(ret 1)\n\n```\n~~~\n`\n~~~~\nend\r\n***\r\n| a | b |\n|---|--:|\n| 1 | 2 |\nlast';
  for (const size of [1, 2, 3, 7, 19]) {
    let parsed;
    for (let end = 0; end < whole.length + size; end += size) {
      parsed = parseGrowing(whole.slice(0, end), parsed);
      assert.deepEqual(parsed.blocks, parseMarkdown(whole.slice(0, end)), JSON.stringify(whole.slice(0, end)));
    }
  }
  assert.deepEqual(parseGrowing('other\n\ntext', parseGrowing('some\n\n\n\nmore\n\n\n')).blocks.map((block) => block.raw), ['other', 'text']);
});

test('a very long text is plain text, in parts that stay as they are', () => {
  const long = fill('Some *marks* in a line.\n', 200_001);
  const blocks = parseMarkdown(long);
  assert.ok(blocks.length > 5 && blocks.every((block) => block.kind === 'plain' && block.text.length <= 20_000));
  assert.equal(blocks.map((block) => block.text).join('\n'), long);
  const longer = parseMarkdown(`${long} and more`);
  assert.deepEqual(longer.slice(0, blocks.length - 1).map((block) => block.raw), blocks.slice(0, -1).map((block) => block.raw));
  const emoji = `a${fill('👩', 400_000)}`;
  assert.ok(parseMarkdown(emoji).every((block) => block.text.isWellFormed()));
  assert.equal(parseMarkdown(emoji).map((block) => block.text).join(''), emoji);
  assert.equal(parseMarkdown(fill('*a* ', 200_000))[0].kind, 'paragraph');
});
