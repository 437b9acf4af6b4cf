// Opened rows and zoomed plots, saved in the fragment of the URL (`#open=row-7&burn=…`), so that a
// link or a reload restores them. An open dialog uses the whole fragment.

const DIALOG = "#dialog=";
const MAX_ROWS = 20; // keeps links short

function readState() {
  return new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
}

/** @param {string} name @param {string} value Empty to remove it. */
function writeState(name, value) {
  if (location.hash.startsWith(DIALOG)) return;
  const all = readState();
  if (value) all.set(name, value);
  else all.delete(name);
  const text = [...all].map(([key, text]) => `${key}=${encodeURIComponent(text).replaceAll("%2C", ",")}`).join("&");
  const hash = text || location.hash.includes("=") ? text && `#${text}` : location.hash;
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

/** @returns {string[]} Ids of the opened rows. */
function openedRows() {
  return (readState().get("open") ?? "").split(",").filter(Boolean);
}

// Only clicks are saved: rows that the page opens are open for everyone.
document.addEventListener("click", (event) => {
  const row = /** @type {HTMLDetailsElement} */ (event.target.closest("summary")?.parentElement);
  if (!row?.id || !row.closest("#main")) return;
  setTimeout(() => {
    const others = openedRows().filter((id) => id !== row.id);
    writeState("open", (row.open ? [...others, row.id].slice(-MAX_ROWS) : others).join(","));
  });
});

document.addEventListener("switchgear:url-state", (event) => writeState(event.detail.name, event.detail.value));

function restoreRows() {
  const rows = openedRows().map((id) => /** @type {HTMLDetailsElement} */ (document.getElementById(id)));
  for (const row of rows) if (row?.matches("#main details")) row.open = true;
  rows.find((row) => row?.open)?.scrollIntoView({ block: "nearest" });
}

window.addEventListener("hashchange", restoreRows);
restoreRows();
