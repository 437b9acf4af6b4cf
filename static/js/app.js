// What every page has: dialogs, what is said after a change, the menu, the theme, copy buttons.

const dialog = document.getElementById("dialog");
const inside = document.getElementById("dialog-body");
let opener = null;

/* --- dialogs: a link marked data-dialog opens its page inside one */

// The open dialog stands in the address (`#dialog=/switches/engage/`): it can be shared, it comes
// back after a reload, and Back closes it.
const MARK = "#dialog=";

let leaving = false; // on the way back to the address without it
let next = null; // what is to open then

function open(link, path, from) {
  if (leaving) {
    next = () => open(link, path, from);
    return;
  }
  opener = from;
  if (!location.hash.startsWith(MARK)) {
    // What htmx wrote into this place of the history would make it load the page on the way back.
    history.replaceState(null, "", location.href);
    history.pushState({ dialog: true }, "", MARK + path);
  } else history.replaceState(history.state, "", MARK + path);
  load(path, { target: "#dialog-body", source: link });
}

// A failure is told where htmx reports it.
function load(path, context) {
  window.htmx.ajax("GET", path, context).catch(() => {});
}

// Only what a link of this page would open: an address made up elsewhere opens nothing else.
function openMarked() {
  if (!location.hash.startsWith(MARK) || dialog.open || !window.htmx || !dialog.showModal) return;
  const asked = new URL(location.hash.slice(MARK.length), location.origin);
  const links = [...document.querySelectorAll("a[data-dialog]")];
  const link = links.find((one) => one.href === asked.href) ?? links.find((one) => one.pathname === asked.pathname);
  const always = [...document.querySelectorAll("[data-in-dialog][data-path]")].some((one) => one.dataset.path === asked.pathname);
  if (asked.origin === location.origin && (link || always)) open(link ?? document.body, asked.pathname + asked.search, link);
  else history.replaceState(null, "", location.pathname + location.search);
}

function back() {
  if (!leaving) return;
  leaving = false;
  next?.();
  next = null;
}

window.addEventListener("popstate", () => {
  if (leaving) back();
  else if (location.hash.startsWith(MARK)) openMarked();
  else if (dialog.open) dialog.close();
});

function unmark() {
  if (!location.hash.startsWith(MARK)) return;
  if (history.state?.dialog) {
    leaving = true;
    history.back();
    setTimeout(back, 500);
  } else history.replaceState(null, "", location.pathname + location.search);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-dialog]");
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || event.defaultPrevented || !window.htmx || !dialog.showModal) return;
  event.preventDefault();
  open(link, link.pathname + link.search, dialog.open ? opener : link);
});

document.addEventListener("switchgear:open", (event) => {
  const { path, from } = event.detail;
  if (window.htmx && dialog.showModal) open(document.body, path, from ?? opener);
  else location.assign(path);
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target !== inside) return;
  if (!dialog.open) {
    opener ??= document.activeElement;
    dialog.showModal();
  }
  dialog.scrollTop = 0;
  // On a phone a field would bring up its keyboard, above what can be tapped instead.
  const touched = window.matchMedia("(pointer: coarse)").matches ? inside.querySelector("[data-touch-focus]") : null;
  const field =
    inside.querySelector("[aria-invalid='true']") ??
    touched ??
    inside.querySelector("[autofocus], [data-focus]") ??
    inside.querySelector("textarea, input:not([type='hidden'])") ??
    inside.querySelector("a.button, button.button--main, #dialog-title");
  field?.focus();
  // htmx would set the focus once more when the swap settles, under somebody who types already.
  for (const element of inside.querySelectorAll("[autofocus]")) element.removeAttribute("autofocus");
});

dialog.addEventListener("close", () => {
  unmark();
  inside.replaceChildren();
  dialog.querySelector("[data-announcer]").textContent = "";
  const back = opener?.isConnected ? opener : opener?.id && document.getElementById(opener.id);
  (back || document.getElementById("engage") || document.getElementById("main"))?.focus();
  opener = null;
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) dialog.close();
  if (event.target === dialog && !inside.querySelector("textarea, input")) dialog.close();
});

/* --- after a change: say so, and show what is now */

function say(message, signIn = false) {
  document.dispatchEvent(new CustomEvent("switchgear:say", { detail: { message, signIn } }));
}

document.addEventListener("switchgear:done", (event) => {
  if (dialog.open) dialog.close();
  say(event.detail.message);
  document.body.dispatchEvent(new Event("refresh"));
  // A page that keeps nothing current by itself is fetched as a whole, and stays where it is.
  if (document.querySelector("#main :is(#live, [data-effect])") || !window.htmx) return;
  const here = location.pathname + location.search;
  load(here, { target: "#main", select: "#main", swap: "merge" });
});

// Whether somebody has set this field to something else than the page came with.
function isChanged(field) {
  if (field.matches("select")) {
    const given = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(given, 0);
  }
  if (field.matches("[type='checkbox'], [type='radio']")) return field.checked !== field.defaultChecked;
  return field.type !== "hidden" && field.value !== field.defaultValue;
}

function isTyped() {
  if (inside.querySelector("textarea, input:not([type='hidden'])")) return true;
  return [...document.querySelectorAll("#main form[method='post'] :is(input, textarea, select)")].some(isChanged);
}

// The page leads to the sign-in, unless that would lose what somebody has typed.
function signedOut(typed = isTyped()) {
  if (!typed) {
    location.assign(`/sign-in/?next=${encodeURIComponent(location.pathname + location.search)}`);
  } else if (!document.querySelector("[data-sign-in]:not([hidden])")) {
    say(
      "You are signed out, and nothing was changed. What you typed is kept: sign in in another tab, then press again.",
      true,
    );
  }
}

// A sign-in in another tab changes the token that forms carry; the cookie has the present one.
function presentToken() {
  return document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
}

document.addEventListener("htmx:configRequest", (event) => {
  const token = presentToken();
  if (token && event.detail.parameters.has("csrfmiddlewaretoken")) {
    event.detail.parameters.set("csrfmiddlewaretoken", token);
  }
});
document.addEventListener("submit", (event) => {
  const token = presentToken();
  const field = event.target.elements.namedItem("csrfmiddlewaretoken");
  if (token && field) field.value = token;
});

// A form that leaves the page takes along what was typed in it, so it stays here until the console
// answers and knows who sends it. One that is slow may do it all the same: then a second press sends.
const PATIENCE = 8000; // ms
const LEAVES = "#main form[method='post']:not([hx-post], [data-passkey])";
const NOBODY = 0;
const LATE = 504;
const asking = new WeakSet();
const doubtful = new WeakSet();
let asked = null;

async function presence() {
  const url = document.getElementById("palette").dataset.url;
  const signal = AbortSignal.timeout(PATIENCE);
  try {
    return (await fetch(url, { headers: { "HX-Request": "true" }, signal })).status;
  } catch (error) {
    return error.name === "TimeoutError" ? LATE : NOBODY;
  }
}

async function send(form, submitter) {
  asking.add(form);
  form.setAttribute("aria-busy", "true");
  const status = await presence();
  asking.delete(form);
  form.removeAttribute("aria-busy");
  if (!form.isConnected || (submitter && submitter.form !== form)) {
    say("The page changed meanwhile, and nothing was sent. Look again.");
  } else if (status === 401) signedOut(true);
  else if (status === NOBODY) say("The console does not answer. Nothing was sent, and what you typed is kept.");
  else if (status >= 500) {
    doubtful.add(form);
    say("The console does not answer well. Nothing was sent, and what you typed is kept: press again to send it nevertheless.");
  } else {
    asked = form;
    form.requestSubmit(submitter);
    asked = null;
  }
}

function holdsText(form) {
  return form.querySelector("textarea, select, input:not([type='hidden'])") !== null;
}

document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (form === asked || doubtful.delete(form) || form.dataset.sent) return; // What was sent is kept back elsewhere.
    if (!document.getElementById("palette") || !form.matches(LEAVES) || !holdsText(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!asking.has(form)) send(form, event.submitter);
  },
  true,
);

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, (event) => {
    if (event.detail.xhr?.status === 401) {
      signedOut();
      return;
    }
    // A button inside a part that polls is a person's, not a poll.
    const asked = event.detail.target === inside;
    if (!asked && event.target.closest?.("#live, #alarm, #plan, #search, [data-effect]")) return;
    const status = event.detail.xhr?.status;
    const { verb, path } = event.detail.requestConfig ?? {};
    if (asked && (!status || status >= 500) && (verb === "get" || dialog.open)) {
      document.dispatchEvent(new CustomEvent("switchgear:unanswered", { detail: { verb, path } }));
    } else if (status === 403) say("You may not do that, or this page is too old: reload it.");
    else say("The console did not answer. Nothing is known to have changed; look before you try again.");
  });
}

/* --- what stays on top has no fixed height: the side begins below it, and on a small screen only
   where one is and that everything is stopped stay there */

const bars = document.querySelector("[data-bars]");
const measure = new ResizeObserver(() => {
  const heights = [...bars.querySelectorAll(".environment, .alarm--all > .alarm__word")].map((one) => one.offsetHeight);
  const whole = bars.offsetHeight || heights.reduce((sum, one) => sum + one, 0);
  document.documentElement.style.setProperty("--bars", `${whole}px`);
  document.documentElement.style.setProperty("--environment", `${heights[0] ?? 0}px`);
});
for (const one of [bars, bars.querySelector(".environment"), document.body]) measure.observe(one);

/* --- where one is, in a list of pages that is longer than there is room */

const pages = document.getElementById("nav");
const here = pages?.querySelector("[aria-current='page']");
if (here) {
  pages.scrollLeft = here.offsetLeft - (pages.clientWidth - here.offsetWidth) / 2;
  pages.scrollTop = here.offsetTop - (pages.clientHeight - here.offsetHeight) / 2;
}

/* --- menu, theme, filters, copying */

document.addEventListener("click", (event) => {
  const menu = document.querySelector("[data-menu][open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-theme-form]");
  if (!form || !event.submitter) return;
  event.preventDefault();
  const theme = event.submitter.value;
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
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  say("Copied.");
});

function reveal() {
  for (const button of document.querySelectorAll("[data-shortcuts]")) button.hidden = false;
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("htmx:load", reveal);
reveal();
openMarked();
