/**
 * The views that the navigation, the palette and the keys open.
 *
 * @import {IconName} from './parts/icon.js'
 *
 * @typedef {object} Place
 * @property {string} view
 * @property {string} label
 * @property {IconName} icon
 * @property {string} key The key after `g`.
 * @property {boolean} [isSecondary] If true, it is in the menu of a phone.
 */

/** @type {Place[]} */
export const PLACES = [
  { view: 'chat', label: 'Chat', icon: 'chat', key: 'c' },
  { view: 'runs', label: 'Runs', icon: 'runs', key: 'r' },
  { view: 'approvals', label: 'Approvals', icon: 'approve', key: 'a' },
  { view: 'catalog', label: 'Catalog', icon: 'catalog', key: 'p', isSecondary: true },
  { view: 'sandbox', label: 'Sandbox', icon: 'sandbox', key: 'x' },
  { view: 'sessions', label: 'Sessions', icon: 'sessions', key: 's', isSecondary: true },
  { view: 'agents', label: 'Agents', icon: 'agents', key: 'e', isSecondary: true },
  { view: 'memory', label: 'Memory', icon: 'memory', key: 'm', isSecondary: true },
  { view: 'usage', label: 'Usage', icon: 'usage', key: 'u', isSecondary: true },
  { view: 'settings', label: 'Settings', icon: 'settings', key: ',', isSecondary: true },
];
