"use strict";
// Light or dark: what was chosen here, or else what the system says. Modules run when something may have been painted
// already, so this is a script of its own; the braces keep its names to itself.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  function chosen() {
    try {
      return localStorage.getItem("labelsense.theme");
    } catch {
      return null;
    }
  }

  function choose(theme) {
    setTheme(theme);
    try {
      localStorage.setItem("labelsense.theme", theme);
    } catch {
      /* it is only for comfort */
    }
  }

  function system() {
    return dark.matches ? "dark" : "light";
  }

  /** Set the theme, and name the button, where it is there, by the other one. */
  function setTheme(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "dark" ? "Light" : "Dark";
  }

  setTheme(chosen() ?? system());
  document.addEventListener("DOMContentLoaded", () => {
    setTheme(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      choose(root.dataset.theme === "dark" ? "light" : "dark");
    });
    dark.addEventListener("change", () => {
      if (!chosen()) setTheme(system());
    });
  });
}
