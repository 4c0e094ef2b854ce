"use strict";

const $ = (id) => document.getElementById(id);

/** The theme of a page: that of the system, light or dark. */
function theme() {
  const choices = ["auto", "light", "dark"];
  let now = "auto";
  try {
    now = localStorage.getItem("entaug-theme") || "auto";
  } catch { /* no storage: use the system setting */ }
  const set = (name) => {
    now = choices.includes(name) ? name : "auto";
    document.documentElement.style.colorScheme = now === "auto" ? "" : now;
    $("theme-name").textContent = now;
    $("theme").setAttribute("aria-label", `Theme: ${now === "auto" ? "system setting" : now}`);
  };
  set(now);
  $("theme").addEventListener("click", () => {
    set(choices[(choices.indexOf(now) + 1) % 3]);
    try {
      localStorage.setItem("entaug-theme", now);
    } catch { /* no storage: the choice lasts for this visit */ }
  });
}
