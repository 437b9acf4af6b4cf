// Shortcuts on a dead letter's page: r retries or restores it, d discards it, and c copies it. They click
// links and buttons, so everything works without this module.

const DISABLED_KEY = "switchgear.shortcuts.off";

/** @param {string[]} ids */
function clickFirst(...ids) {
  ids.map((id) => document.getElementById(id)).find((element) => element && !element.hidden)?.click();
}

/** @type {Record<string, () => void>} */
const SHORTCUTS = {
  r: () => clickFirst("do-retry", "do-restore"),
  d: () => clickFirst("do-discard"),
  c: () => clickFirst("copy-json"),
};

let lastGAt = 0;

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing || event.repeat) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (document.querySelector("dialog[open]") || localStorage.getItem(DISABLED_KEY) !== null) return;
  // A key after g opens another page.
  const followsG = Date.now() - lastGAt < 1200;
  lastGAt = event.key === "g" ? Date.now() : 0;
  if (followsG || !SHORTCUTS[event.key]) return;
  event.preventDefault();
  SHORTCUTS[event.key]();
});
