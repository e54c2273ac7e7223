// Light or dark: as the system prefers, or as the button says. Runs before the page is drawn.
"use strict";
(() => {
  const KEY = "subgnn-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const preferred = () => (system.matches ? "dark" : "light");

  function chosen() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is not allowed here
    }
  }

  function choose(theme) {
    try {
      if (theme === preferred()) localStorage.removeItem(KEY); // follow the system again
      else localStorage.setItem(KEY, theme);
    } catch { /* the choice lasts until the page is closed */ }
    apply(theme);
  }

  function apply(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "dark" ? "Light" : "Dark";
    dispatchEvent(new Event("themechange"));
  }

  const start = () => apply(chosen() ?? preferred());
  start();
  system.addEventListener("change", start);
  addEventListener("DOMContentLoaded", () => {
    start();
    document.getElementById("theme").addEventListener("click", () => choose(root.dataset.theme === "dark" ? "light" : "dark"));
  });
})();
