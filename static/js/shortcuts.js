// Single-key shortcuts. They can be turned off, and are ignored during typing. The server's list of
// shortcuts defines the keys of pages.

const DISABLED_KEY = "switchgear.shortcuts.off";
const SEQUENCE_MS = 2_000; // between the two keys of a sequence, by the times of the events
const shortcuts = /** @type {HTMLDialogElement | null} */ (document.getElementById("shortcuts"));
const dialog = document.getElementById("dialog");
const toggle = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-shortcuts-on]"));
const paths = new Map([...document.querySelectorAll("[data-keys]")].map((one) => [one.dataset.keys, one.dataset.path]));
let firstKey = "";
let firstKeyAt = 0;

if (toggle) {
  toggle.checked = localStorage.getItem(DISABLED_KEY) === null;
  toggle.addEventListener("change", () => {
    if (toggle.checked) localStorage.removeItem(DISABLED_KEY);
    else localStorage.setItem(DISABLED_KEY, "1");
  });
}

/** @param {string} name @param {object} detail */
function emit(name, detail = {}) {
  document.dispatchEvent(new CustomEvent(`switchgear:${name}`, { detail }));
}

// Engage the switch of the open page; if it is engaged already, extend it.
function engage() {
  const link = document.querySelector("#engage, #do-engage");
  const keep = document.querySelector("#do-extend, #do-reconfirm");
  if (link) link.click();
  else if (keep) {
    emit("toast", { message: "This switch is already engaged, so you can extend it here. To engage another, go to the switchboard." });
    keep.click();
  } else if (document.body.dataset.mayOperate !== undefined) emit("open", { path: paths.get("e"), from: document.activeElement });
  else emit("toast", { message: "Only operators engage switches. Ask an operator." });
}

/** @type {Record<string, () => void>} */
const SHORTCUTS = {
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => shortcuts?.showModal(),
  e: engage,
  f: () => document.getElementById("do-override")?.click(),
  u: () => emit("times"),
  z: () => emit("undo"),
  a: () => {
    const forms = /** @type {HTMLFormElement[]} */ ([...document.querySelectorAll("form[data-abort]")]);
    if (forms.length === 1) forms[0].requestSubmit();
    else emit("toast", { message: forms.length ? `This page shows ${forms.length} ramps. Use the button of the one to abort.` : "This page shows no ramp to abort." });
  },
};

/** @param {EventTarget} target */
function isTyping(target) {
  const field = target.closest("input:not([type='radio'], [type='checkbox']), textarea, select, [contenteditable]");
  return field !== null && (field.checkVisibility?.() ?? true); // a field that was just hidden still has the focus
}

/** @param {KeyboardEvent} event */
function handleEscape(event) {
  const menu = /** @type {HTMLDetailsElement | null} */ (document.querySelector("[data-menu][open]"));
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  const field = /** @type {HTMLElement} */ (event.target);
  if (field.matches("[data-search]")) field.blur();
}

// In a dialog only undo is allowed: other keys could be meant for a field.
/** @param {string} key */
function isAllowed(key) {
  const open = document.querySelector("dialog[open]");
  return !open || (open === dialog && key === "z");
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    handleEscape(event);
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (isTyping(event.target) || !isAllowed(event.key)) return;
  if (localStorage.getItem(DISABLED_KEY) !== null || event.repeat) return;
  const path = event.timeStamp - firstKeyAt < SEQUENCE_MS ? paths.get(`${firstKey} ${event.key}`) : undefined;
  firstKey = event.key;
  firstKeyAt = event.timeStamp;
  if (path) {
    event.preventDefault();
    location.assign(path);
    return;
  }
  if (!SHORTCUTS[event.key]) return;
  event.preventDefault();
  SHORTCUTS[event.key]();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-shortcuts]")) shortcuts.showModal();
});
document.addEventListener("switchgear:abort", SHORTCUTS.a);
document.addEventListener("switchgear:shortcuts", () => shortcuts?.showModal());
