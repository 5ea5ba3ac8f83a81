/**
 * A block of code in a message: highlighted if it is a program, with a button that copies it.
 */

import { h } from '../dom.js';
import { highlight, isProgram } from '../highlight.js';
import { href } from '../router.js';
import { copyButton } from './bits.js';

/**
 * @param {string} text
 * @param {string} language
 */
export function codeBlock(text, language) {
  const isOurs = isProgram(language);
  return h('figure', { class: 'code-block' },
    h('figcaption', null, h('span', null, language || 'text'), h('span', { class: 'end row' },
      isOurs ? h('a', { class: 'small', href: href('sandbox', [], { code: text }) }, 'Open in sandbox') : null,
      copyButton(() => text, 'Code'))),
    h('pre', { tabindex: '0', role: 'region', 'aria-label': `Code, ${language || 'text'}` }, h('code', null, isOurs ? highlight(text) : text)));
}
