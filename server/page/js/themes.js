/**
 * The theme that a person chose: light, dark, or that of the system. `theme.js` sets it at the start.
 *
 * @typedef {'light'|'dark'|'system'} Theme
 */

const KEY = 'wattle.theme';

/** @returns {Theme} */
export function getTheme() {
  const theme = localStorage.getItem(KEY);
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

/** @param {Theme} theme */
export function setTheme(theme) {
  if (theme === 'system') {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, theme);
    document.documentElement.dataset.theme = theme;
  }
}
