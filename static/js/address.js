// What somebody opened or zoomed stands behind the # of the address (`#open=row-7&burn=…`), so that a
// link or a reload brings it back. An open dialog has that place to itself.

const DIALOG = "#dialog=";
const MAX_ROWS = 20; // rows; more would be no link any more

function held() {
  return new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
}

function hold(name, value) {
  if (location.hash.startsWith(DIALOG)) return;
  const all = held();
  if (value) all.set(name, value);
  else all.delete(name);
  const told = [...all].map(([key, text]) => `${key}=${encodeURIComponent(text).replaceAll("%2C", ",")}`).join("&");
  const hash = told || location.hash.includes("=") ? told && `#${told}` : location.hash;
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

function opened() {
  return (held().get("open") ?? "").split(",").filter(Boolean);
}

// A press alone counts: what the page itself opens is open for everybody.
document.addEventListener("click", (event) => {
  const row = event.target.closest("summary")?.parentElement;
  if (!row?.id || !row.closest("#main")) return;
  setTimeout(() => {
    const others = opened().filter((id) => id !== row.id);
    hold("open", (row.open ? [...others, row.id].slice(-MAX_ROWS) : others).join(","));
  });
});

document.addEventListener("switchgear:hold", (event) => hold(event.detail.name, event.detail.value));

function bring() {
  const rows = opened().map((id) => document.getElementById(id));
  for (const row of rows) if (row?.matches("#main details")) row.open = true;
  rows.find((row) => row?.open)?.scrollIntoView({ block: "nearest" });
}

window.addEventListener("hashchange", bring);
bring();
