/**
 * Icons as paths on a grid of 24.
 */

import { svg } from '../dom.js';

const PATHS = {
  plus: 'M12 5v14M5 12h14',
  chat: 'M4 5h16v11H9l-5 4z',
  runs: 'M4 6h9M4 12h14M4 18h6',
  approve: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4',
  catalog: 'M5 4h11l3 3v13H5zM9 10h6M9 14h6',
  sandbox: 'M8 7l-5 5 5 5M16 7l5 5-5 5',
  sessions: 'M4 7h6l2 2h8v10H4z',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4M6 15v4',
  agents: 'M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-5 4-7 8-7s8 2 8 7',
  memory: 'M4 6c0-3 16-3 16 0s-16 3-16 0v12c0 3 16 3 16 0V6M4 12c0 3 16 3 16 0',
  usage: 'M4 4v16h16M9 16v-4M13 16V7M17 16v-6',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12l5 5L19 7',
  close: 'M6 6l12 12M18 6L6 18',
  stop: 'M7 7h10v10H7z',
  send: 'M12 19V5M6 11l6-6 6 6',
  attach: 'M19 11l-7.500 7.500a4.500 4.500 0 0 1-6.400-6.400L13 4.500a3 3 0 0 1 4.300 4.300L9.600 16.500a1.500 1.500 0 0 1-2.100-2.100L14 8',
  fork: 'M7 4v16M7 9c0 4 10 2 10 8v3M17 4v4M4 6l3-3 3 3',
  replay: 'M4 12a8 8 0 1 0 3-6M4 4v4h4',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  more: 'M5 12h.010M12 12h.010M19 12h.010',
  right: 'M9 6l6 6-6 6',
  down: 'M6 9l6 6 6-6',
  play: 'M8 5l11 7-11 7z',
  pause: 'M8 5v14M16 5v14',
  previous: 'M17 6l-7 6 7 6M7 6v12',
  next: 'M7 6l7 6-7 6M17 6v12',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  help: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.700.300-1 .800-1 1.700M12 17h.010',
  moon: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  warning: 'M12 4l9 16H3zM12 10v4M12 17h.010',
};

/** @typedef {keyof typeof PATHS} IconName */

/**
 * Creates an icon that screen readers skip.
 *
 * @param {IconName} name
 */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, svg('path', { d: PATHS[name] }));
}
