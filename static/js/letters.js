// Dead letters by keyboard: j and k go from letter to letter in a list; on the page of one, r retries
// it, d discards it, c copies it. All of these are links and buttons: everything works without this.

const OFF = "switchgear.shortcuts.off";

function letters() {
  return [...document.querySelectorAll("[data-letter]")];
}

function step(by) {
  const all = letters();
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? all[by > 0 ? 0 : all.length - 1] : all[at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function press(...ids) {
  ids.map((id) => document.getElementById(id)).find((element) => element && !element.hidden)?.click();
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  r: () => press("do-retry", "do-restore"),
  d: () => press("do-discard"),
  c: () => press("copy-json"),
};

let afterG = 0;

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing || event.repeat) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (document.querySelector("dialog[open]") || localStorage.getItem(OFF) !== null) return;
  // What follows a g leads to another page.
  const leads = Date.now() - afterG < 1200;
  afterG = event.key === "g" ? Date.now() : 0;
  if (leads || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
