// What every page has: dialogs, toasts, the menu, the theme, copy buttons and the keyboard.

const dialog = document.getElementById("dialog");
const inside = document.getElementById("dialog-body");
const shortcuts = document.getElementById("shortcuts");
const toasts = document.getElementById("toasts");
let opener = null;

/* --- dialogs: a link marked data-dialog opens its page inside one */

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-dialog]");
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || !window.htmx || !dialog.showModal) return;
  event.preventDefault();
  opener = link;
  window.htmx.ajax("GET", link.href, { target: "#dialog-body", source: link });
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target !== inside) return;
  if (!dialog.open) {
    opener ??= document.activeElement;
    dialog.showModal();
  }
  dialog.scrollTop = 0;
  const field =
    inside.querySelector("[aria-invalid='true']") ??
    inside.querySelector("[autofocus], [data-focus]") ??
    inside.querySelector("textarea, input:not([type='hidden'])") ??
    inside.querySelector("a.button, button.button--main, #dialog-title");
  field?.focus();
  // htmx would set the focus once more when the swap settles, under somebody who types already.
  for (const element of inside.querySelectorAll("[autofocus]")) element.removeAttribute("autofocus");
});

dialog.addEventListener("close", () => {
  inside.replaceChildren();
  dialog.querySelector("[data-announcer]").textContent = "";
  const back = opener?.isConnected ? opener : opener?.id && document.getElementById(opener.id);
  (back || document.getElementById("engage") || document.getElementById("main"))?.focus();
  opener = null;
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) dialog.close();
  if (event.target === dialog && !inside.querySelector("textarea, input")) dialog.close();
  event.target.closest("[data-dismiss]")?.closest(".toast")?.remove();
});

/* --- after a change: say so, and show what is now */

document.addEventListener("switchgear:done", (event) => {
  if (dialog.open) dialog.close();
  toast(event.detail.message);
  document.body.dispatchEvent(new Event("refresh"));
});

function toast(text, signIn = false) {
  const made = document.getElementById("toast-template").content.cloneNode(true);
  made.querySelector("[data-text]").textContent = text;
  made.querySelector("[data-sign-in]").hidden = !signIn;
  const element = made.firstElementChild;
  // A dialog lies above everything else on the page, so while one is open it carries the toast.
  (dialog.open ? dialog : toasts).append(element);
  setTimeout(() => element.remove(), signIn ? 60000 : 10000);
}

// The page leads to the sign-in, unless that would lose what somebody has typed.
function signedOut() {
  if (!inside.querySelector("textarea, input:not([type='hidden'])")) {
    location.assign(`/sign-in/?next=${encodeURIComponent(location.pathname + location.search)}`);
  } else if (!document.querySelector("[data-sign-in]:not([hidden])")) {
    toast(
      "You are signed out, and nothing was changed. What you typed is kept: sign in in another tab, then press again.",
      true,
    );
  }
}

// A sign-in in another tab changes the token that forms carry; the cookie has the present one.
document.addEventListener("htmx:configRequest", (event) => {
  const token = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
  if (token && event.detail.parameters.has("csrfmiddlewaretoken")) {
    event.detail.parameters.set("csrfmiddlewaretoken", token);
  }
});

for (const element of toasts.children) setTimeout(() => element.remove(), 10000);

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, (event) => {
    if (event.detail.xhr?.status === 401) {
      signedOut();
      return;
    }
    if (event.target.closest?.("#live, #alarm, #plan, #search, [data-effect]")) return;
    const status = event.detail.xhr?.status;
    if (status === 403) toast("You may not do that, or this page is too old: reload it.");
    else toast("The console did not answer. Nothing is known to have changed; look before you try again.");
  });
}

/* --- what stays on top has no fixed height: the side begins below it */

const bars = document.querySelector("[data-bars]");
new ResizeObserver(() => {
  document.documentElement.style.setProperty("--bars", `${bars.offsetHeight}px`);
}).observe(bars);

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
  toast("Copied.");
});

function reveal() {
  for (const button of document.querySelectorAll("[data-shortcuts]")) button.hidden = false;
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}

/* --- keyboard: single keys, which can be turned off, and never while somebody types */

const OFF = "switchgear.shortcuts.off";
const GO = { s: "/", b: "/breakers/", d: "/dead-letters/", m: "/breakers/map/", r: "/ramps/", o: "/slos/", p: "/approvals/", a: "/audit/" };
const toggle = document.querySelector("[data-shortcuts-on]");
let afterG = 0;

if (toggle) {
  toggle.checked = localStorage.getItem(OFF) === null;
  toggle.addEventListener("change", () => {
    if (toggle.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  });
}

const KEYS = {
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => shortcuts?.showModal(),
  e: () => {
    const link = document.querySelector("#engage, #do-engage");
    if (link) link.click();
    else if (document.body.dataset.mayOperate !== undefined) location.assign("/switches/engage/");
  },
  f: () => document.getElementById("do-override")?.click(),
  a: () => {
    const forms = [...document.querySelectorAll("form[data-abort]")];
    if (forms.length === 1) forms[0].requestSubmit();
    else if (forms.length) toast(`${forms.length} ramps are under way here: press the button of one.`);
  },
};

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = document.querySelector("[data-menu][open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
    if (event.target.matches("[data-search]")) event.target.blur();
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (localStorage.getItem(OFF) !== null || event.repeat) return;
  if (Date.now() - afterG < 1200 && GO[event.key]) {
    event.preventDefault();
    location.assign(GO[event.key]);
    return;
  }
  afterG = event.key === "g" ? Date.now() : 0;
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-shortcuts]")) shortcuts.showModal();
});

document.addEventListener("htmx:load", reveal);
reveal();
