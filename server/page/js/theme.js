// Sets the theme before the first paint. A classic script, so that the page never flashes.
(() => {
  const theme = localStorage.getItem('wattle.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
})();
