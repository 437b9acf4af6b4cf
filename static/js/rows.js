// Rows of lists and boards: a click anywhere in a row opens its main link, which is its first one; j and
// k move between the rows, and Enter opens the focused one.

const ROWS = "#main tbody > tr, #main .list-row, #main [data-letters] > li";
const CONTROLS = "a, button, input, select, textarea, label, summary, [contenteditable]";
const DISABLED_KEY = "switchgear.shortcuts.off";
const SEQUENCE_MS = 2_000; // a key after g opens another page
let lastGAt = -SEQUENCE_MS;

/** @param {Element} row @returns {HTMLElement} */
function mainLink(row) {
  return row.querySelector("a[href]:not([data-dialog])");
}

function visibleLinks() {
  const links = [...document.querySelectorAll(ROWS)].map(mainLink);
  return links.filter((link) => link?.checkVisibility?.() ?? link);
}

/** @param {number} by 1 for the next row, -1 for the previous one. */
function moveFocus(by) {
  const links = visibleLinks();
  const index = links.findIndex((link) => link.closest(ROWS)?.contains(document.activeElement));
  const next = index < 0 ? links[by > 0 ? 0 : links.length - 1] : links[index + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest(CONTROLS) || String(getSelection())) return;
  const row = event.target.closest(ROWS);
  if (row) mainLink(row)?.click();
});

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (document.querySelector("dialog[open]") || localStorage.getItem(DISABLED_KEY) !== null) return;
  const followsG = event.timeStamp - lastGAt < SEQUENCE_MS;
  lastGAt = event.key === "g" ? event.timeStamp : -SEQUENCE_MS;
  if (followsG || (event.key !== "j" && event.key !== "k")) return;
  event.preventDefault();
  moveFocus(event.key === "j" ? 1 : -1);
});
