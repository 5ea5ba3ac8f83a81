/**
 * Renders parsed Markdown as DOM nodes. Every foreign string becomes a text node.
 *
 * @import {Block, Parsed} from './markdown.js'
 * @import {Inline} from './markdown-inline.js'
 */

import { h } from './dom.js';
import { visible } from './format.js';
import { highlight } from './highlight.js';
import { parseGrowing } from './markdown.js';
import { codeBlock } from './parts/code-block.js';

/** @type {WeakMap<Element, Parsed>} */
const shown = new WeakMap();

/**
 * Renders Markdown into an element. When the text of an answer grows, the nodes of unchanged blocks
 * at the start stay as they are.
 *
 * @param {Element} parent
 * @param {string} source
 */
export function renderMarkdown(parent, source) {
  const before = shown.get(parent);
  const parsed = parseGrowing(visible(source), before);
  const { blocks } = parsed;
  // Others may have removed what was shown.
  const old = before?.blocks.slice(0, parent.childElementCount) ?? [];
  let same = 0;
  while (same < old.length && same < blocks.length && old[same]?.raw === blocks[same]?.raw) same += 1;
  while (parent.childElementCount > same) parent.lastElementChild?.remove();
  for (const block of blocks.slice(same)) parent.append(renderBlock(block));
  shown.set(parent, parsed);
}

/**
 * @param {Block} block
 * @returns {HTMLElement}
 */
function renderBlock(block) {
  switch (block.kind) {
    // The page has its own headings, so those of a message start two levels below.
    case 'heading': return h(/** @type {'h3'} */ (`h${Math.min(6, block.level + 2)}`), { dir: 'auto' }, inline(block.children));
    case 'paragraph': return h('p', { dir: 'auto' }, inline(block.children));
    case 'code': return codeBlock(block.text, block.language);
    case 'rule': return h('hr');
    case 'plain': return h('p', { dir: 'auto', class: 'plain' }, block.text);
    case 'quote': return h('blockquote', { dir: 'auto' }, block.blocks.map(renderBlock));
    case 'list': {
      const items = block.items.map((item) => h('li', { dir: 'auto', class: item.checked === null ? null : 'task' },
        item.checked === null ? null : h('span', { class: 'check', role: 'img', 'aria-label': item.checked ? 'done' : 'open' }, item.checked ? '☑' : '☐'),
        item.blocks.map((inner) => (inner.kind === 'paragraph' && item.blocks.length === 1
          ? h('span', null, inline(inner.children)) : renderBlock(inner)))));
      return block.ordered ? h('ol', { start: block.start }, items) : h('ul', null, items);
    }
    case 'table': return h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': 'Table' }, h('table', null,
      h('thead', null, h('tr', null, block.head.map((cell, i) => h('th', { scope: 'col', class: `align-${block.align[i] ?? 'start'}` }, inline(cell))))),
      h('tbody', null, block.rows.map((row) => h('tr', null,
        row.map((cell, i) => h('td', { dir: 'auto', class: `align-${block.align[i] ?? 'start'}` }, inline(cell))))))));
    default: return h('p');
  }
}

/**
 * @param {Inline[]} nodes
 * @returns {Node[]}
 */
function inline(nodes) {
  return nodes.map((node) => {
    switch (node.kind) {
      case 'text': return document.createTextNode(node.text);
      case 'code': return h('code', null, highlightShort(node.text));
      case 'break': return h('br');
      case 'link': return h('a', { href: node.href, target: '_blank', rel: 'noopener noreferrer nofollow', title: node.href }, inline(node.children));
      case 'strong': return h('strong', null, inline(node.children));
      case 'em': return h('em', null, inline(node.children));
      default: return h('del', null, inline(node.children));
    }
  });
}

/** @param {string} text */
function highlightShort(text) {
  return text.startsWith('(') && text.endsWith(')') ? highlight(text) : [document.createTextNode(text)];
}
