// Toasts: short messages at the edge of the page. They take no focus, and stay while hovered or
// focused. After engaging, a toast offers Undo for thirty seconds, and then Release.

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
const toasts = document.getElementById("toasts");
const STORAGE_KEY = "switchgear.undo"; // survives navigation
const IF_NEWEST = "if_newest"; // field that the shortcut adds and the button does not
const SHORT_MS = 10_000;
const LONG_MS = 60_000;

/* --- reserve room for toasts, so that they cover no controls */

function makeRoom() {
  /** @param {HTMLElement[]} shown */
  const heights = (shown) => shown.reduce((sum, one) => sum + one.getBoundingClientRect().height, 0);
  const inDialog = heights([...dialog.querySelectorAll(":scope > .toast")]);
  dialog.style.setProperty("--toasts", `${inDialog ? inDialog + 24 : 0}px`);
  document.documentElement.style.setProperty("--toasts", `${heights([toasts])}px`);
}

new ResizeObserver(makeRoom).observe(toasts);
new MutationObserver(makeRoom).observe(dialog, { childList: true });

/* --- showing and removing */

/** @param {HTMLElement} element */
function removeToast(element) {
  if (!element.isConnected) return;
  const focused = element.contains(document.activeElement);
  element.remove();
  if (focused) document.getElementById("main")?.focus();
}

/** @param {HTMLElement} element @param {number} wait milliseconds */
function removeAfter(element, wait) {
  setTimeout(() => {
    if (element.matches(":hover, :focus-within")) removeAfter(element, 2_000);
    else removeToast(element);
  }, wait);
}

/** @param {HTMLElement} element */
function showToast(element) {
  // An open dialog covers the page, so it contains the toast.
  (dialog.open ? dialog : toasts).append(element);
}

document.addEventListener("switchgear:toast", (event) => {
  const { message, signIn, outcome } = event.detail;
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById("toast-template"));
  const fragment = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
  fragment.querySelector("[data-text]").textContent = message;
  fragment.querySelector("[data-sign-in]").hidden = !signIn;
  const element = /** @type {HTMLElement} */ (fragment.firstElementChild);
  element.toggleAttribute("data-outcome", Boolean(outcome));
  showToast(element);
  removeAfter(element, signIn ? LONG_MS : SHORT_MS);
});

document.addEventListener("click", (event) => {
  const shown = event.target.closest("[data-dismiss]")?.closest(".toast");
  if (!shown) return;
  if (shown.hasAttribute("data-undo-toast")) dismissUndo();
  removeToast(shown);
});

for (const element of toasts.children) removeAfter(/** @type {HTMLElement} */ (element), SHORT_MS);

/* --- undo: offered after the dialog is closed or the page is left */

/**
 * @typedef {object} Undo
 * @property {string} name
 * @property {string} path
 * @property {string} release
 * @property {number} ends by the browser's clock
 * @property {number} until by the server's clock
 * @property {boolean} [dismissed]
 * @property {string} verb this and the next three are texts, those of an engagement unless the form has others
 * @property {string} done
 * @property {string} stays
 * @property {string} remedy
 */

/** @type {Undo | null} */
let pendingUndo = null;
let settledUntil = 0; // of the newest offer that was used or outdated; a refresh may still show its form

function clearUndo() {
  pendingUndo = null;
  sessionStorage.removeItem(STORAGE_KEY);
}

function settleUndo() {
  settledUntil = pendingUndo.until;
  clearUndo();
  for (const element of document.querySelectorAll("[data-undo-toast]")) removeToast(element);
}

/** @param {Undo} undo */
function saveUndo(undo) {
  pendingUndo = undo;
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(pendingUndo));
}

function dismissUndo() {
  if (pendingUndo) saveUndo({ ...pendingUndo, dismissed: true });
}

// Offer the user's newest engagement or override that can be undone.
/** @param {HTMLElement} form */
function adoptUndo(form) {
  const { name, left, release, verb = "engaging", done = " is engaged.", remedy = "Release…" } = form.dataset;
  const { stays = " stays engaged. To let traffic flow again:" } = form.dataset;
  const path = form.getAttribute("action");
  const until = Number(form.dataset.ends);
  if (until <= settledUntil || (pendingUndo && pendingUndo.until >= until)) return false;
  const texts = { verb, done, stays, remedy };
  saveUndo({ name, path, release, until, ...texts, ends: Date.now() + Number(left) * 1_000 });
  return true;
}

/** @param {Undo} undo */
function isOnPage(undo) {
  const forms = [...document.querySelectorAll("#main form[data-undo]")];
  return forms.some((form) => form.getAttribute("action") === undo.path && form.checkVisibility());
}

function showUndo() {
  const template = /** @type {HTMLTemplateElement | null} */ (document.getElementById("undo-template"));
  for (const old of document.querySelectorAll("[data-undo-toast]")) old.remove();
  if (!template || !pendingUndo || pendingUndo.dismissed || pendingUndo.ends - Date.now() < 1_000) return;
  const fragment = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
  const element = /** @type {HTMLElement} */ (fragment.firstElementChild);
  const form = element.querySelector("form");
  const left = element.querySelector("[data-left]");
  fillName(element, pendingUndo.name, pendingUndo.done);
  element.querySelector("[data-name]").textContent = ` ${pendingUndo.verb} ${pendingUndo.name}`;
  form.action = pendingUndo.path;
  form.setAttribute("hx-post", pendingUndo.path);
  form.dataset.ends = String(pendingUndo.until);
  const link = /** @type {HTMLAnchorElement} */ (element.querySelector("[data-release]"));
  link.href = pendingUndo.release;
  link.textContent = pendingUndo.remedy;
  toasts.append(element);
  window.htmx?.process(element);
  tick(element, left, pendingUndo);
}

/** @param {HTMLElement} element @param {string} switchId @param {string} said */
function fillName(element, switchId, said) {
  const key = element.querySelector("[data-switch-id]");
  key.textContent = switchId;
  key.title = switchId;
  element.querySelector("[data-said]").textContent = said;
}

/** @param {HTMLElement} element @param {HTMLElement} left @param {Undo} undo */
function tick(element, left, undo) {
  if (!element.isConnected) return;
  const seconds = Math.ceil((undo.ends - Date.now()) / 1_000);
  element.hidden = isOnPage(undo);
  if (seconds <= 0) expireUndo(element, undo);
  else {
    left.textContent = `${seconds} s`;
    setTimeout(() => tick(element, left, undo), 250);
  }
}

/** @param {HTMLElement} element @param {Undo} undo */
function expireUndo(element, undo) {
  const form = element.querySelector("form");
  const focused = form.contains(document.activeElement);
  const release = element.querySelector("[data-release]");
  form.hidden = true;
  release.hidden = false;
  fillName(element, undo.name, undo.stays);
  if (focused) release.focus();
  sessionStorage.removeItem(STORAGE_KEY);
  removeAfter(element, SHORT_MS);
}

document.addEventListener("htmx:afterSwap", (event) => {
  const form = /** @type {Element} */ (event.target).id === "dialog-body" && dialog.querySelector("form[data-undo]");
  if (form) adoptUndo(form);
});

dialog.addEventListener("close", showUndo);

/** @param {XMLHttpRequest} xhr */
function waitsForApproval(xhr) {
  const events = JSON.parse(xhr.getResponseHeader("HX-Trigger") ?? "{}");
  return Boolean(events["switchgear:done"]?.waits);
}

// After an undo by any button, or a release, remove the offer. A request for approval leaves it.
document.addEventListener("htmx:afterRequest", (event) => {
  const { pathInfo, requestConfig, xhr } = event.detail;
  const path = pathInfo?.requestPath;
  if (!pendingUndo || (path !== pendingUndo.path && path !== pendingUndo.release)) return;
  const posted = path === pendingUndo.release && requestConfig.verb === "post" && xhr.status === 204;
  const released = posted && !waitsForApproval(xhr);
  const undone = path === pendingUndo.path && xhr.status === 204;
  const refused = path === pendingUndo.path && xhr.status === 409 && !requestConfig.parameters.has(IF_NEWEST);
  if (!released && !undone && !refused) return;
  settleUndo();
});

// A form that the browser sends itself.
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const edits = event.submitter?.getAttribute("name") === "do";
  if (form.getAttribute("action") === pendingUndo?.release && !form.hasAttribute("hx-post") && !edits) settleUndo();
});

const stored = sessionStorage.getItem(STORAGE_KEY);
if (stored) pendingUndo = JSON.parse(stored);
for (const form of document.querySelectorAll("#main form[data-undo]")) adoptUndo(form);
showUndo();

// A refresh may show a newer engagement from another tab.
document.getElementById("main")?.addEventListener("htmx:load", () => {
  const newer = [...document.querySelectorAll("#main form[data-undo]")].filter(adoptUndo);
  if (newer.length) showUndo();
});

// The key z undoes the newest engagement shown here. The server refuses it if a newer one exists
// elsewhere, or two at the same time: then a button has to be used.
document.addEventListener("switchgear:undo", () => {
  const found = (dialog.open ? dialog : document).querySelectorAll("form[action$='/undo/'] button");
  const buttons = /** @type {HTMLButtonElement[]} */ ([...found]);
  const shown = buttons.filter((button) => button.checkVisibility() && !button.disabled);
  const [newest] = shown.sort((one, other) => Number(other.form.dataset.ends) - Number(one.form.dataset.ends));
  if (!newest) {
    const message = "Nothing to undo. You can undo what you engaged or forced for 30 seconds.";
    document.dispatchEvent(new CustomEvent("switchgear:toast", { detail: { message } }));
    return;
  }
  const field = Object.assign(document.createElement("input"), { type: "hidden", name: IF_NEWEST, value: "1" });
  newest.form.append(field);
  newest.click();
  field.remove();
});
