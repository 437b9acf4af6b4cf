// Shared by all pages: dialogs, toasts after changes, the menu, the theme, copy buttons.

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
const dialogBody = document.getElementById("dialog-body");
/** @type {HTMLElement | null} */
let opener = null;

/* --- dialogs: links with data-dialog open their page in a dialog */

// The URL's fragment names the open dialog (`#dialog=/switches/engage/`): links can be shared, a
// reload reopens it, and Back closes it.
const DIALOG_HASH = "#dialog=";

let isGoingBack = false; // history.back() to the URL without the fragment is under way
/** @type {(() => void) | null} */
let openNext = null; // opens the next dialog after that

/** @param {HTMLElement} link @param {string} path @param {HTMLElement | null} from the element to focus after closing */
function openDialog(link, path, from) {
  if (isGoingBack) {
    openNext = () => openDialog(link, path, from);
    return;
  }
  opener = from;
  if (!location.hash.startsWith(DIALOG_HASH)) {
    // htmx's state in this history entry would make it reload the page on Back.
    history.replaceState(null, "", location.href);
    history.pushState({ dialog: true }, "", DIALOG_HASH + path);
  } else history.replaceState(history.state, "", DIALOG_HASH + path);
  load(path, { target: "#dialog-body", source: link });
}

// Failures are handled by the listeners of htmx's error events.
/** @param {string} path @param {Record<string, unknown>} context */
function load(path, context) {
  window.htmx.ajax("GET", path, context).catch(() => {});
}

// Open only dialogs that this page links to, so that a crafted URL opens nothing else.
function openFromUrl() {
  if (!location.hash.startsWith(DIALOG_HASH) || dialog.open || !window.htmx || !dialog.showModal) return;
  const url = new URL(location.hash.slice(DIALOG_HASH.length), location.origin);
  const links = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("a[data-dialog]")]);
  const link = links.find((one) => one.href === url.href) ?? links.find((one) => one.pathname === url.pathname);
  const always = [...document.querySelectorAll("[data-in-dialog][data-path]")].some((one) => one.dataset.path === url.pathname);
  if (url.origin === location.origin && (link || always)) openDialog(link ?? document.body, url.pathname + url.search, link);
  else history.replaceState(null, "", location.pathname + location.search);
}

function finishGoingBack() {
  if (!isGoingBack) return;
  isGoingBack = false;
  openNext?.();
  openNext = null;
}

window.addEventListener("popstate", () => {
  if (isGoingBack) finishGoingBack();
  else if (location.hash.startsWith(DIALOG_HASH)) openFromUrl();
  else if (dialog.open) dialog.close();
});

function clearDialogHash() {
  if (!location.hash.startsWith(DIALOG_HASH)) return;
  if (history.state?.dialog) {
    isGoingBack = true;
    history.back();
    setTimeout(finishGoingBack, 500);
  } else history.replaceState(null, "", location.pathname + location.search);
}

document.addEventListener("click", (event) => {
  const link = /** @type {HTMLAnchorElement | null} */ (event.target.closest("a[data-dialog]"));
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || event.defaultPrevented || !window.htmx || !dialog.showModal) return;
  event.preventDefault();
  openDialog(link, link.pathname + link.search, dialog.open ? opener : link);
});

document.addEventListener("switchgear:open", (event) => {
  const { path, from } = event.detail;
  if (window.htmx && dialog.showModal) openDialog(document.body, path, from ?? opener);
  else location.assign(path);
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target !== dialogBody) return;
  if (!dialog.open) {
    opener ??= /** @type {HTMLElement} */ (document.activeElement);
    dialog.showModal();
  }
  dialog.scrollTop = 0;
  // On a phone, focusing a field would open the keyboard over the suggestions.
  const touched = window.matchMedia("(pointer: coarse)").matches ? dialogBody.querySelector("[data-touch-focus]") : null;
  const field =
    dialogBody.querySelector("[aria-invalid='true']") ??
    touched ??
    dialogBody.querySelector("[autofocus], [data-focus]") ??
    dialogBody.querySelector("textarea, input:not([type='hidden'])") ??
    dialogBody.querySelector("a.button, button.button--main, #dialog-title");
  field?.focus();
  // htmx would focus it again when the swap settles, while the user may be typing already.
  for (const element of dialogBody.querySelectorAll("[autofocus]")) element.removeAttribute("autofocus");
});

dialog.addEventListener("close", () => {
  clearDialogHash();
  dialogBody.replaceChildren();
  dialog.querySelector("[data-announcer]").textContent = "";
  const back = opener?.isConnected ? opener : opener?.id && document.getElementById(opener.id);
  (back || document.getElementById("engage") || document.getElementById("main"))?.focus();
  opener = null;
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) dialog.close();
  if (event.target === dialog && !dialogBody.querySelector("textarea, input")) dialog.close();
});

/* --- after a change: show a toast unless the page shows the result, and refresh the page */

/** @param {string} message @param {boolean} signIn @param {boolean} outcome */
function showToast(message, signIn = false, outcome = false) {
  document.dispatchEvent(new CustomEvent("switchgear:toast", { detail: { message, signIn, outcome } }));
}

document.addEventListener("switchgear:done", (event) => {
  if (dialog.open) dialog.close();
  for (const former of document.querySelectorAll(".toast[data-outcome]")) former.remove();
  const { message, shown } = event.detail;
  if (shown) document.dispatchEvent(new CustomEvent("switchgear:announce", { detail: { message } }));
  else showToast(message, false, true);
  document.body.dispatchEvent(new Event("refresh"));
  // A page without live parts is fetched whole and merged.
  if (document.querySelector("#main :is(#live, [data-effect])") || !window.htmx) return;
  const path = location.pathname + location.search;
  load(path, { target: "#main", select: "#main", swap: "merge" });
});

// True if the field differs from its initial value.
/** @param {any} field an input, textarea or select */
function isChanged(field) {
  if (field.matches("select")) {
    const options = /** @type {HTMLSelectElement} */ (field).options;
    const given = [...options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(given, 0);
  }
  if (field.matches("[type='checkbox'], [type='radio']")) return field.checked !== field.defaultChecked;
  return field.type !== "hidden" && field.value !== field.defaultValue;
}

function hasTypedInput() {
  if (dialogBody.querySelector("textarea, input:not([type='hidden'])")) return true;
  return [...document.querySelectorAll("#main form[method='post'] :is(input, textarea, select)")].some(isChanged);
}

// Go to the sign-in page, unless typed input would be lost.
function handleSignedOut(typed = hasTypedInput()) {
  if (!typed) {
    location.assign(`/sign-in/?next=${encodeURIComponent(location.pathname + location.search)}`);
  } else if (!document.querySelector("[data-sign-in]:not([hidden])")) {
    showToast(
      "You are signed out. Nothing was changed, and what you typed is kept. Sign in in another tab, then try again.",
      true,
    );
  }
}

// A sign-in in another tab changes the CSRF token; the cookie has the current one.
function currentToken() {
  const prefix = `${document.documentElement.dataset.csrfCookie}=`;
  return document.cookie.split("; ").find((text) => text.startsWith(prefix))?.slice(prefix.length);
}

document.addEventListener("htmx:configRequest", (event) => {
  const token = currentToken();
  if (token && event.detail.parameters.has("csrfmiddlewaretoken")) {
    event.detail.parameters.set("csrfmiddlewaretoken", token);
  }
});
document.addEventListener("submit", (event) => {
  const token = currentToken();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const field = /** @type {HTMLInputElement | null} */ (form.elements.namedItem("csrfmiddlewaretoken"));
  if (token && field) field.value = token;
});

// Submitting a plain form leaves the page, so check first that the console responds and the session
// is valid. If the check times out, the submit may still work: a second press sends the form.
const TIMEOUT_MS = 8000;
const PAGE_FORMS = "#main form[method='post']:not([hx-post], [data-passkey])";
const NO_RESPONSE = 0;
const GATEWAY_TIMEOUT = 504;
const checking = new WeakSet();
const unconfirmed = new WeakSet();
/** @type {HTMLFormElement | null} */
let confirmedForm = null;

async function checkConsole() {
  const url = document.getElementById("palette").dataset.url;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return (await fetch(url, { headers: { "HX-Request": "true" }, signal })).status;
  } catch (error) {
    return /** @type {Error} */ (error).name === "TimeoutError" ? GATEWAY_TIMEOUT : NO_RESPONSE;
  }
}

/** @param {HTMLFormElement} form @param {HTMLButtonElement | null} submitter */
async function sendIfReachable(form, submitter) {
  checking.add(form);
  form.setAttribute("aria-busy", "true");
  const status = await checkConsole();
  checking.delete(form);
  form.removeAttribute("aria-busy");
  if (!form.isConnected || (submitter && submitter.form !== form)) {
    showToast("The page has changed in the meantime. Nothing was sent. Check it, then try again.");
  } else if (status === 401) handleSignedOut(true);
  else if (status === NO_RESPONSE) showToast("The console does not respond. Nothing was sent, and what you typed is kept.");
  else if (status >= 500) {
    unconfirmed.add(form);
    showToast("The console returns errors. Nothing was sent, and what you typed is kept. Press again to send it anyway.");
  } else {
    confirmedForm = form;
    form.requestSubmit(submitter);
    confirmedForm = null;
  }
}

/** @param {HTMLFormElement} form */
function hasFields(form) {
  return form.querySelector("textarea, select, input:not([type='hidden'])") !== null;
}

document.addEventListener(
  "submit",
  (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (form === confirmedForm || unconfirmed.delete(form) || form.dataset.sent) return; // A second submit is prevented in engage.js.
    if (!document.getElementById("palette") || !form.matches(PAGE_FORMS) || !hasFields(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!checking.has(form)) sendIfReachable(form, /** @type {HTMLButtonElement | null} */ (event.submitter));
  },
  true,
);

// A refusal is shown in the dialog: it says who may do it, and offers to ask.
document.addEventListener("htmx:beforeSwap", (/** @type {any} */ event) => {
  if (event.detail.target !== dialogBody || event.detail.xhr.status !== 403) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, (/** @type {any} */ event) => {
    if (event.detail.xhr?.status === 401) {
      handleSignedOut();
      return;
    }
    // Failed polls are shown by live.js; buttons inside live parts are not polls.
    const isDialogRequest = event.detail.target === dialogBody;
    if (!isDialogRequest && event.target.closest?.("#live, #alarm, #plan, #search, [data-effect]")) return;
    const status = event.detail.xhr?.status;
    const { verb, path } = event.detail.requestConfig ?? {};
    if (isDialogRequest && (!status || status >= 500) && (verb === "get" || dialog.open)) {
      document.dispatchEvent(new CustomEvent("switchgear:no-response", { detail: { verb, path } }));
    } else if (status === 403) showToast("You have no permission for this, or this page is out of date. Reload it.");
    else showToast("The console did not respond. We can't tell whether this went through. Check before you try again.");
  });
}

/* --- the bars on top have no fixed height: publish it, so that the sidebar begins below them; small
   screens keep only the environment and the notice of a global stop */

const bars = document.querySelector("[data-bars]");
const barsObserver = new ResizeObserver(() => {
  const heights = [...bars.querySelectorAll(".environment, .alarm--all > .alarm__word")].map((one) => one.offsetHeight);
  const whole = bars.offsetHeight || heights.reduce((sum, one) => sum + one, 0);
  document.documentElement.style.setProperty("--bars", `${whole}px`);
  document.documentElement.style.setProperty("--environment", `${heights[0] ?? 0}px`);
});
for (const one of [bars, bars.querySelector(".environment"), document.body]) barsObserver.observe(one);

/* --- scroll the navigation to the current page */

const nav = document.getElementById("nav");
const currentLink = nav?.querySelector("[aria-current='page']");
if (currentLink) {
  nav.scrollLeft = currentLink.offsetLeft - (nav.clientWidth - currentLink.offsetWidth) / 2;
  nav.scrollTop = currentLink.offsetTop - (nav.clientHeight - currentLink.offsetHeight) / 2;
}

/* --- menu, theme, filters, copying */

document.addEventListener("click", (event) => {
  const menu = /** @type {HTMLDetailsElement | null} */ (document.querySelector("[data-menu][open]"));
  if (menu && !menu.contains(/** @type {Node} */ (event.target))) menu.open = false;
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-theme-form]");
  if (!form || !event.submitter) return;
  event.preventDefault();
  const theme = /** @type {HTMLButtonElement} */ (event.submitter).value;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  if (theme === "system") {
    delete document.documentElement.dataset.theme;
    document.cookie = `theme=; Path=/; Max-Age=0; SameSite=Lax${secure}`;
  } else {
    document.documentElement.dataset.theme = theme;
    document.cookie = `theme=${theme}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  }
  for (const button of form.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button === event.submitter));
  }
});

document.addEventListener("change", (event) => {
  const field = /** @type {HTMLInputElement} */ (event.target);
  if (field.matches("[data-submit]")) field.form.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  showToast("Copied.");
});

function revealButtons() {
  for (const button of document.querySelectorAll("[data-shortcuts]")) button.hidden = false;
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("htmx:load", revealButtons);
revealButtons();
openFromUrl();
