// What is said in passing, at the edge of the page: it takes no focus, and stays while somebody
// looks at it. After engaging, the way back for thirty seconds, and then the way to release.

const dialog = document.getElementById("dialog");
const toasts = document.getElementById("toasts");
const KEPT = "switchgear.undo"; // so that it survives a change of page
const IF_NEWEST = "if_newest"; // what the key sends along, and a button does not
const SHORT = 10_000;
const LONG = 60_000;

/* --- room: what stands at the edge takes its own, so that it lies on nothing to be pressed */

function makeRoom() {
  const heights = (shown) => shown.reduce((sum, one) => sum + one.getBoundingClientRect().height, 0);
  const inDialog = heights([...dialog.querySelectorAll(":scope > .toast")]);
  dialog.style.setProperty("--toasts", `${inDialog ? inDialog + 24 : 0}px`);
  document.documentElement.style.setProperty("--toasts", `${heights([toasts])}px`);
}

new ResizeObserver(makeRoom).observe(toasts);
new MutationObserver(makeRoom).observe(dialog, { childList: true });

/* --- showing and leaving */

function leave(element) {
  if (!element.isConnected) return;
  const focused = element.contains(document.activeElement);
  element.remove();
  if (focused) document.getElementById("main")?.focus();
}

function leaveAfter(element, wait) {
  setTimeout(() => {
    if (element.matches(":hover, :focus-within")) leaveAfter(element, 2_000);
    else leave(element);
  }, wait);
}

function show(element) {
  // A dialog lies above everything else on the page, so while one is open it carries the toast.
  (dialog.open ? dialog : toasts).append(element);
}

document.addEventListener("switchgear:say", (event) => {
  const { message, signIn } = event.detail;
  const made = document.getElementById("toast-template").content.cloneNode(true);
  made.querySelector("[data-text]").textContent = message;
  made.querySelector("[data-sign-in]").hidden = !signIn;
  const element = made.firstElementChild;
  show(element);
  leaveAfter(element, signIn ? LONG : SHORT);
});

document.addEventListener("click", (event) => {
  const shown = event.target.closest("[data-dismiss]")?.closest(".toast");
  if (!shown) return;
  if (shown.hasAttribute("data-undo-toast")) dismiss();
  leave(shown);
});

for (const element of toasts.children) leaveAfter(element, SHORT);

/* --- undo: offered when the dialog that engaged is closed, or its page is left */

// { name, path, release, ends, until, dismissed }: `ends` by this machine's clock, `until` by the server's
let offered = null;

function forget() {
  offered = null;
  sessionStorage.removeItem(KEPT);
}

function keep(undo) {
  offered = undo;
  sessionStorage.setItem(KEPT, JSON.stringify(offered));
}

function dismiss() {
  if (offered) keep({ ...offered, dismissed: true });
}

// The newest of what this person can take back is what is offered, wherever it was engaged.
function adopt(form) {
  const { name, left, release } = form.dataset;
  const path = form.getAttribute("action");
  const until = Number(form.dataset.ends);
  if (offered && offered.until >= until) return false;
  keep({ name, path, release, until, ends: Date.now() + Number(left) * 1_000 });
  return true;
}

function isOnPage(undo) {
  const forms = [...document.querySelectorAll("#main form[data-undo]")];
  return forms.some((form) => form.getAttribute("action") === undo.path && form.checkVisibility());
}

function offer() {
  const template = document.getElementById("undo-template");
  for (const old of document.querySelectorAll("[data-undo-toast]")) old.remove();
  if (!template || !offered || offered.dismissed || offered.ends - Date.now() < 1_000) return;
  const element = template.content.cloneNode(true).firstElementChild;
  const form = element.querySelector("form");
  const left = element.querySelector("[data-left]");
  name(element, offered.name, " is engaged.");
  element.querySelector("[data-name]").textContent = ` engaging ${offered.name}`;
  form.action = offered.path;
  form.setAttribute("hx-post", offered.path);
  form.dataset.ends = offered.until;
  element.querySelector("[data-release]").href = offered.release;
  toasts.append(element);
  window.htmx?.process(element);
  tick(element, left, offered);
}

function name(element, switchId, said) {
  const key = element.querySelector("[data-switch-id]");
  key.textContent = switchId;
  key.title = switchId;
  element.querySelector("[data-said]").textContent = said;
}

function tick(element, left, undo) {
  if (!element.isConnected) return;
  const seconds = Math.ceil((undo.ends - Date.now()) / 1_000);
  element.hidden = isOnPage(undo);
  if (seconds <= 0) tooLate(element, undo);
  else {
    left.textContent = `${seconds} s`;
    setTimeout(() => tick(element, left, undo), 250);
  }
}

function tooLate(element, undo) {
  const form = element.querySelector("form");
  const focused = form.contains(document.activeElement);
  const release = element.querySelector("[data-release]");
  form.hidden = true;
  release.hidden = false;
  name(element, undo.name, " stays engaged. To let traffic flow again:");
  if (focused) release.focus();
  sessionStorage.removeItem(KEPT);
  leaveAfter(element, SHORT);
}

document.addEventListener("htmx:afterSwap", (event) => {
  const form = event.target.id === "dialog-body" && dialog.querySelector("form[data-undo]");
  if (form) adopt(form);
});

dialog.addEventListener("close", offer);

// Taken back, by whichever button: nothing is left to offer.
document.addEventListener("htmx:afterRequest", (event) => {
  if (!offered || event.detail.pathInfo?.requestPath !== offered.path) return;
  const refused = event.detail.xhr.status === 409 && !event.detail.requestConfig.parameters.has(IF_NEWEST);
  if (event.detail.xhr.status !== 204 && !refused) return;
  forget();
  for (const element of document.querySelectorAll("[data-undo-toast]")) leave(element);
});

const kept = sessionStorage.getItem(KEPT);
if (kept) offered = JSON.parse(kept);
for (const form of document.querySelectorAll("#main form[data-undo]")) adopt(form);
offer();

// Engaged elsewhere meanwhile, and told by the page as it is now.
document.getElementById("main")?.addEventListener("htmx:load", () => {
  const newer = [...document.querySelectorAll("#main form[data-undo]")].filter(adopt);
  if (newer.length) offer();
});

// The key z takes back the newest of all that is shown here. The server refuses it if something
// newer was engaged elsewhere, or two at once: then only a button says which is meant.
document.addEventListener("switchgear:undo", () => {
  const buttons = [...(dialog.open ? dialog : document).querySelectorAll("form[action$='/undo/'] button")];
  const shown = buttons.filter((button) => button.checkVisibility() && !button.disabled);
  const [newest] = shown.sort((one, other) => other.form.dataset.ends - one.form.dataset.ends);
  if (!newest) {
    const message = "Nothing to undo: that goes for 30 seconds, for what you engaged yourself.";
    document.dispatchEvent(new CustomEvent("switchgear:say", { detail: { message } }));
    return;
  }
  const asks = Object.assign(document.createElement("input"), { type: "hidden", name: IF_NEWEST, value: "1" });
  newest.form.append(asks);
  newest.click();
  asks.remove();
});
