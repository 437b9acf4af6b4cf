// When the console does not answer whoever opens a dialog or sends one: that is said in the dialog,
// stays there, and comes with the lines that stop something from a shell.

const dialog = document.getElementById("dialog");
const inside = document.getElementById("dialog-body");
const template = document.getElementById("unanswered-template");
const PATIENCE = 3_000; // ms; whoever wants to stop something looks at nothing for no longer
const NAMED = /^\/switches\/([a-z]+)\/([^/]+)\//;
const KEY = /^[A-Za-z0-9._-]{1,120}$/;
// Names of scopes, with the key of those that have only one.
const SCOPES = new Map(template.dataset.scopes.split(" ").map((each) => each.split(":")));
let waiting = null; // the request that is to fill the dialog
let late = 0;

/* --- which switch it was about, as far as that is known */

function wanted(path) {
  const url = new URL(path, location.origin);
  const typed = inside.querySelector("form[data-engage]")?.elements;
  const [, named, own] = NAMED.exec(url.pathname) ?? [];
  const isSwitch = SCOPES.has(named);
  const scope = (isSwitch ? named : url.searchParams.get("scope")) ?? typed?.scope.value;
  const key = (isSwitch ? own : url.searchParams.get("key")) ?? typed?.key.value;
  const onlyKey = SCOPES.get(scope);
  return onlyKey || KEY.test(key ?? "") ? { scope, key: onlyKey ?? key, isOnly: Boolean(onlyKey) } : null;
}

function fill(shown, { scope, key, isOnly }) {
  const texts = {
    name: `${scope}:${key}`,
    option: isOnly ? `--${scope}` : `--${scope} ${key}`,
    forced: isOnly ? scope : `${scope}:${key}`,
  };
  for (const place of shown.querySelectorAll("[data-fill]")) place.textContent = texts[place.dataset.fill];
}

/* --- saying it */

function made(path, state) {
  const shown = template.content.cloneNode(true);
  for (const part of shown.querySelectorAll("[data-while]")) {
    if (!part.dataset.while.split(" ").includes(state)) part.remove();
  }
  for (const button of shown.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  const again = shown.querySelector("[data-ask-again]");
  if (again) again.dataset.askAgain = path;
  const named = wanted(path);
  if (named) fill(shown, named);
  return shown;
}

function show(path, state) {
  const shown = made(path, state);
  const body = dialog.open ? inside.querySelector(".dialog__body") : null;
  body?.querySelector("[data-unanswered]")?.remove();
  // What somebody has typed in an open dialog is theirs.
  if (body) body.prepend(shown.querySelector("[data-unanswered]"));
  else inside.replaceChildren(shown);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("dialog-title").focus();
}

/* --- noticing it */

function fetches(event) {
  return event.detail.target === inside && event.detail.requestConfig.verb === "get";
}

document.addEventListener("htmx:beforeSend", (event) => {
  if (!fetches(event)) return;
  const { xhr, pathInfo } = event.detail;
  waiting = xhr;
  clearTimeout(late);
  late = setTimeout(() => waiting === xhr && show(pathInfo.requestPath, "late"), PATIENCE);
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.xhr !== waiting) return;
  clearTimeout(late);
  waiting = null;
});

// Somebody who closes the dialog no longer waits for it.
dialog.addEventListener("close", () => waiting?.abort());

document.addEventListener("switchgear:unanswered", ({ detail }) => {
  show(detail.path, detail.verb === "get" ? "none" : "doubt");
});

document.addEventListener("click", (event) => {
  const path = event.target.closest("[data-ask-again]")?.dataset.askAgain;
  if (path) document.dispatchEvent(new CustomEvent("switchgear:open", { detail: { path } }));
});
