// Shows in the dialog that the console does not respond to opening or submitting it, together with
// the shell commands that engage the switch without the console.

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
const dialogBody = document.getElementById("dialog-body");
const template = /** @type {HTMLTemplateElement} */ (document.getElementById("no-response-template"));
const TIMEOUT_MS = 3_000; // an operator must not wait longer without feedback
const SWITCH_PATH = /^\/switches\/([a-z]+)\/([^/]+)\//;
const VALID_KEY = /^[A-Za-z0-9._-]{1,120}$/;
// Name of each scope → its only key, if it has just one.
const SCOPES = new Map(template.dataset.scopes.split(" ").map((each) => /** @type {[string, string]} */ (each.split(":"))));
/** @type {XMLHttpRequest | null} */
let pendingRequest = null; // the request that loads or submits the dialog
let isLoading = false; // it loads the dialog
let timeout = 0;

/* --- the switch that the request was about, if known */

/** @typedef {{ scope: string, key: string, isOnly: boolean }} NamedSwitch */

/** @param {string} path @returns {NamedSwitch | null} */
function findSwitch(path) {
  const url = new URL(path, location.origin);
  const form = /** @type {HTMLFormElement | null} */ (dialogBody.querySelector("form[data-engage]"));
  const fields = /** @type {any} */ (form?.elements);
  const [, named, keyInPath] = SWITCH_PATH.exec(url.pathname) ?? [];
  const isSwitch = SCOPES.has(named);
  const scope = (isSwitch ? named : url.searchParams.get("scope")) ?? fields?.scope.value;
  const key = (isSwitch ? keyInPath : url.searchParams.get("key")) ?? fields?.key.value;
  const onlyKey = SCOPES.get(scope);
  return onlyKey || VALID_KEY.test(key ?? "") ? { scope, key: onlyKey ?? key, isOnly: Boolean(onlyKey) } : null;
}

/** @param {DocumentFragment} shown @param {NamedSwitch} named */
function fillTexts(shown, { scope, key, isOnly }) {
  /** @type {Record<string, string>} */
  const texts = {
    name: `${scope}:${key}`,
    option: isOnly ? `--${scope}` : `--${scope} ${key}`,
    forced: isOnly ? scope : `${scope}:${key}`,
  };
  for (const place of shown.querySelectorAll("[data-fill]")) place.textContent = texts[place.dataset.fill];
}

/* --- message */

/** @param {string} path @param {string} state */
function buildMessage(path, state) {
  const shown = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
  for (const part of shown.querySelectorAll("[data-while]")) {
    if (!part.dataset.while.split(" ").includes(state)) part.remove();
  }
  for (const button of shown.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  shown.querySelector("[data-no-response]").dataset.noResponse = state;
  const retryButton = shown.querySelector("[data-retry]");
  if (retryButton) retryButton.dataset.retry = path;
  const requestedSwitch = findSwitch(path);
  if (requestedSwitch) fillTexts(shown, requestedSwitch);
  return shown;
}

// Without a form there is only the message, which the response replaces.
function removeMessage(states = ["unconfirmed", "doubt"]) {
  const shown = dialogBody.querySelector("[data-no-response]");
  if (states.includes(shown?.dataset.noResponse)) shown.remove();
}

/** @param {string} path @param {string} state */
function showMessage(path, state) {
  const shown = buildMessage(path, state);
  const body = dialog.open ? dialogBody.querySelector(".dialog__body") : null;
  body?.querySelector("[data-no-response]")?.remove();
  // Keep the typed input of an open dialog.
  if (body) body.prepend(shown.querySelector("[data-no-response]"));
  else dialogBody.replaceChildren(shown);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("dialog-title").focus();
}

/* --- detection */

document.addEventListener("htmx:beforeSend", (event) => {
  if (event.detail.target !== dialogBody) return;
  const { xhr, pathInfo, requestConfig } = event.detail;
  pendingRequest = xhr;
  isLoading = requestConfig.verb === "get";
  removeMessage();
  clearTimeout(timeout);
  const state = isLoading ? "late" : "unconfirmed";
  timeout = setTimeout(() => pendingRequest === xhr && showMessage(pathInfo.requestPath, state), TIMEOUT_MS);
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.xhr !== pendingRequest) return;
  clearTimeout(timeout);
  pendingRequest = null;
  removeMessage(["unconfirmed"]);
});

// Closing the dialog cancels the request that loads it; a submitted change can't be called back.
dialog.addEventListener("close", () => isLoading && pendingRequest?.abort());

document.addEventListener("switchgear:no-response", ({ detail }) => {
  showMessage(detail.path, detail.verb === "get" ? "none" : "doubt");
  if (detail.verb !== "get") checkAgain();
});

// After a submit without a response, ask for the preview until the console answers: the preview
// says whether the switch is engaged.
const CHECK_EVERY_MS = 3_000;

function checkAgain() {
  const form = dialogBody.querySelector("form[data-engage]");
  if (!form || !dialogBody.querySelector("[data-no-response]")) return;
  if (!pendingRequest) form.dispatchEvent(new Event("change", { bubbles: true }));
  setTimeout(checkAgain, CHECK_EVERY_MS);
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.elt.id === "plan" && event.detail.successful && !pendingRequest) removeMessage();
});

document.addEventListener("click", (event) => {
  const path = event.target.closest("[data-retry]")?.dataset.retry;
  if (path) document.dispatchEvent(new CustomEvent("switchgear:open", { detail: { path } }));
});
