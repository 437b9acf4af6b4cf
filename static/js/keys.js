// The keyboard: single keys, which can be turned off, and never while somebody types. Which keys
// lead to which page is said once, by the server, in the list of shortcuts.

const OFF = "switchgear.shortcuts.off";
const WAIT = 2_000; // ms from the first key of two to the second, as they were pressed
const shortcuts = document.getElementById("shortcuts");
const dialog = document.getElementById("dialog");
const toggle = document.querySelector("[data-shortcuts-on]");
const paths = new Map([...document.querySelectorAll("[data-keys]")].map((one) => [one.dataset.keys, one.dataset.path]));
let first = "";
let firstAt = 0;

if (toggle) {
  toggle.checked = localStorage.getItem(OFF) === null;
  toggle.addEventListener("change", () => {
    if (toggle.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  });
}

function tell(name, detail = {}) {
  document.dispatchEvent(new CustomEvent(`switchgear:${name}`, { detail }));
}

// The switch whose page is open; one that is engaged already can only be extended.
function engage() {
  const link = document.querySelector("#engage, #do-engage");
  const keep = document.querySelector("#do-extend, #do-reconfirm");
  if (link) link.click();
  else if (keep) {
    tell("say", { message: "It is engaged already: this keeps it engaged for longer. To engage another, go to the switchboard first." });
    keep.click();
  } else if (document.body.dataset.mayOperate !== undefined) tell("open", { path: paths.get("e"), from: document.activeElement });
  else tell("say", { message: "Engaging takes the role of an operator, which you don't have. Ask somebody who has it." });
}

const KEYS = {
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => shortcuts?.showModal(),
  e: engage,
  f: () => document.getElementById("do-override")?.click(),
  u: () => tell("times"),
  z: () => tell("undo"),
  a: () => {
    const forms = [...document.querySelectorAll("form[data-abort]")];
    if (forms.length === 1) forms[0].requestSubmit();
    else tell("say", { message: forms.length ? `${forms.length} ramps are under way here: press the button of one.` : "This page shows no ramp to abort." });
  },
};

function isTyping(target) {
  const field = target.closest("input:not([type='radio'], [type='checkbox']), textarea, select, [contenteditable]");
  return field !== null && (field.checkVisibility?.() ?? true); // one that is closed away has the focus for a moment more
}

function escape(event) {
  const menu = document.querySelector("[data-menu][open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  if (event.target.matches("[data-search]")) event.target.blur();
}

// In a dialog a single key could be meant for a field; only the way back is open there.
function mayPress(key) {
  const open = document.querySelector("dialog[open]");
  return !open || (open === dialog && key === "z");
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    escape(event);
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (isTyping(event.target) || !mayPress(event.key)) return;
  if (localStorage.getItem(OFF) !== null || event.repeat) return;
  const path = event.timeStamp - firstAt < WAIT ? paths.get(`${first} ${event.key}`) : undefined;
  first = event.key;
  firstAt = event.timeStamp;
  if (path) {
    event.preventDefault();
    location.assign(path);
    return;
  }
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-shortcuts]")) shortcuts.showModal();
});
document.addEventListener("switchgear:abort", KEYS.a);
document.addEventListener("switchgear:shortcuts", () => shortcuts?.showModal());
