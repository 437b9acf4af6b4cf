// What is said in passing, at the edge of the page: it takes no focus, and stays while somebody
// looks at it. After engaging, the way back for thirty seconds, and then the way to release.

const dialog = document.getElementById("dialog");
const toasts = document.getElementById("toasts");
const KEPT = "switchgear.undo"; // so that it survives a change of page
const SHORT = 10_000;
const LONG = 60_000;

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
  if (shown.hasAttribute("data-undo-toast")) forget();
  leave(shown);
});

for (const element of toasts.children) leaveAfter(element, SHORT);

/* --- undo: offered when the dialog that engaged is closed */

let offered = null; // { name, path, release, ends }: ends by this machine's clock

function forget() {
  offered = null;
  sessionStorage.removeItem(KEPT);
}

function offer() {
  const template = document.getElementById("undo-template");
  for (const old of document.querySelectorAll("[data-undo-toast]")) old.remove();
  if (!template || !offered || offered.ends - Date.now() < 1_000) return;
  const element = template.content.cloneNode(true).firstElementChild;
  const form = element.querySelector("form");
  const left = element.querySelector("[data-left]");
  element.querySelector("[data-text]").textContent = `${offered.name} is engaged.`;
  element.querySelector("[data-name]").textContent = ` engaging ${offered.name}`;
  form.action = offered.path;
  form.setAttribute("hx-post", offered.path);
  element.querySelector("[data-release]").href = offered.release;
  toasts.append(element);
  window.htmx?.process(element);
  tick(element, left, offered);
}

function tick(element, left, undo) {
  if (!element.isConnected) return;
  const seconds = Math.ceil((undo.ends - Date.now()) / 1_000);
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
  element.querySelector("[data-text]").textContent = `${undo.name} stays engaged. To let traffic flow again:`;
  if (focused) release.focus();
  sessionStorage.removeItem(KEPT);
  leaveAfter(element, SHORT);
}

document.addEventListener("htmx:afterSwap", (event) => {
  const form = event.target.id === "dialog-body" && dialog.querySelector("form[data-undo]");
  if (!form) return;
  const { name, left, release } = form.dataset;
  const path = form.getAttribute("action");
  offered = { name, path, release, ends: Date.now() + Number(left) * 1_000 };
  sessionStorage.setItem(KEPT, JSON.stringify(offered));
});

dialog.addEventListener("close", offer);

// Taken back, by whichever button: nothing is left to offer.
document.addEventListener("htmx:afterRequest", (event) => {
  if (!offered || event.detail.pathInfo?.requestPath !== offered.path) return;
  if (event.detail.xhr.status !== 204 && event.detail.xhr.status !== 409) return;
  forget();
  for (const element of document.querySelectorAll("[data-undo-toast]")) leave(element);
});

const kept = sessionStorage.getItem(KEPT);
if (kept) {
  offered = JSON.parse(kept);
  offer();
}

// The key z, wherever the way back is shown.
document.addEventListener("switchgear:undo", () => {
  const shown = (place) => [...place.querySelectorAll("form[action$='/undo/'] button")].filter((one) => one.checkVisibility());
  const [first, ...more] = dialog.open ? shown(dialog) : shown(toasts).length ? shown(toasts) : shown(document);
  const message = more.length ? "More than one can be undone here: press the button of one." : "Nothing to undo: that goes for 30 seconds, for what you engaged yourself.";
  if (first && !more.length) first.click();
  else document.dispatchEvent(new CustomEvent("switchgear:say", { detail: { message } }));
});
