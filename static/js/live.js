// The live part of a page: merged in place, honest about its age.
//
// `hx-swap="merge"` changes only what differs, element by element, so that the focus, a selection,
// an open <details> and whatever is typed survive a refresh that comes every two seconds.

const announcer = document.getElementById("announcer");
const dialog = document.getElementById("dialog");
const failing = new Set(); // the parts whose last poll got no answer, by id
let asOf = new Date();
let heardAt = Date.now(); // by this machine's clock

/* --- merging */

// What the person has changed on the page is theirs: the server does not know it. Nor does it know
// what scripts show and hide by themselves.
const KEPT = new Set(["open", "value", "checked", "selected"]);
const SHOWN_BY_SCRIPT = "[data-gone], [data-copy], [data-shortcuts]";
const FILLED_BY_SCRIPT = "[data-saved]";
const TICKING = "[data-until], [data-since]";

function mergeAttributes(from, to) {
  const kept = new Set(KEPT);
  if (from.matches(TICKING)) kept.add("class");
  if (from.matches(SHOWN_BY_SCRIPT) && from.dataset.gone === to.dataset.gone) kept.add("hidden");
  for (const { name, value } of [...to.attributes]) {
    if (name === "value" && from.type === "hidden") from.value = value;
    if (!kept.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!kept.has(name) && !to.hasAttribute(name)) from.removeAttribute(name);
  }
}

function sameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
}

function mergeChildren(from, to) {
  const byId = new Map();
  for (const child of from.children) if (child.id) byId.set(child.id, child);
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const known = wanted.id ? byId.get(wanted.id) : null;
    if (known && known !== at) from.insertBefore(known, at);
    const present = known ?? at;
    if (present && sameKind(present, wanted)) {
      at = present.nextSibling;
      merge(present, wanted);
    } else {
      from.insertBefore(document.importNode(wanted, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function merge(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  if (from.isEqualNode(to) || from.matches(FILLED_BY_SCRIPT)) return;
  const ticking = from.matches(TICKING) && from.dataset.until === to.dataset.until;
  mergeAttributes(from, to);
  if (!ticking) mergeChildren(from, to);
}

function focusKept(change) {
  const focused = document.activeElement;
  const place = focused?.closest("[id]");
  change();
  if (document.activeElement === focused || !focused || focused === document.body) return;
  // A row that moved or went: its like by id, else the search, never the top of the page.
  const same = focused.id && document.getElementById(focused.id);
  const near = place && document.getElementById(place.id)?.querySelector("a, button");
  (same || near || document.querySelector("[data-search]") || document.getElementById("main"))?.focus();
}

window.htmx?.defineExtension("merge", {
  isInlineSwap: (style) => style === "merge",
  handleSwap(style, target, fragment) {
    if (style !== "merge") return false;
    const wanted = fragment.firstElementChild ?? fragment;
    const before = { conditions: conditions(), reached: reached() };
    focusKept(() => merge(target, wanted));
    announce(before, { conditions: conditions(), reached: reached() });
    return [target];
  },
});

/* --- what changed, said and shown */

function conditions() {
  const found = new Map();
  for (const element of document.querySelectorAll("[data-switch]")) {
    found.set(element.dataset.switch, element.dataset.condition);
  }
  return found;
}

// How far each effect that is shown has got, in steps: the count in between would be chatter.
function reached() {
  const parts = (dialog?.open ? dialog : document).querySelectorAll("[data-reached]");
  return new Map([...parts].map((part) => [part.id, part.dataset.reached]));
}

// What lies outside an open dialog is inert, a live region too.
function say(text) {
  const place = dialog?.open ? dialog.querySelector("[data-announcer]") : announcer;
  place.textContent = text;
}

const TOGETHER = 1_000; // ms; what another text replaces sooner may never be read out
let news = [];
let newsAt = -Infinity;

function tell(text) {
  news = performance.now() - newsAt < TOGETHER ? [...news, text].slice(-3) : [text];
  newsAt = performance.now();
  say(news.join("; "));
}

let searching = false;

function announce(before, after) {
  if (searching) {
    const count = after.conditions.size;
    say(count === 1 ? "1 switch" : `${count} switches`);
    return;
  }
  const found = [];
  for (const [name, condition] of after.conditions) {
    const was = before.conditions.get(name);
    if (was === condition || (was === undefined && condition === "released")) continue;
    found.push(`${name} is ${condition}`);
    const element = document.querySelector(`[data-switch="${CSS.escape(name)}"]`);
    element?.classList.add("just-changed");
    setTimeout(() => element?.classList.remove("just-changed"), 2500);
  }
  for (const [id, step] of after.reached) {
    if ((before.reached.get(id) ?? step) !== step) found.push(document.getElementById(`${id}-said`).textContent);
  }
  if (found.length) tell(found.slice(0, 3).join("; "));
}

/* --- as of, stale since */

function time(moment) {
  const utc = document.documentElement.dataset.times === "utc";
  const told = moment.toLocaleTimeString("en-GB", { hour12: false, timeZone: utc ? "UTC" : zone });
  return utc ? `${told} UTC` : told;
}

const zone = document.documentElement.dataset.zone || undefined;

// The part of the page that a request was to refresh; a search refreshes the live part.
function polled(event) {
  const part = event.target.closest?.("#live, #alarm, #search, [data-effect]");
  return part?.id === "search" ? "live" : part?.id;
}

// Older than it may ever be while all is well: nothing failed, but nothing came either. The machine
// slept, or polls and socket are both stuck.
function isSilent() {
  const every = /every (\d+)s/.exec(document.getElementById("live")?.getAttribute("hx-trigger"))?.[1];
  return every !== undefined && Date.now() - heardAt > 2_000 * Math.max(12, Number(every)) + 6_000;
}

function isStale() {
  return failing.size > 0 || isSilent();
}

function showAge() {
  for (const part of failing) if (!document.getElementById(part)) failing.delete(part);
  block(isStale());
  const labels = document.querySelectorAll("[data-as-of]");
  if (!labels.length) return;
  const stale = isStale();
  const since = time(asOf);
  for (const label of labels) {
    label.classList.toggle("as-of--stale", stale);
    label.lastElementChild.textContent = stale ? `Not current since ${since}; trying again` : `As of ${since}`;
  }
  for (const part of document.querySelectorAll("[data-dims]")) part.classList.toggle("is-stale", stale);
}

function heard(part, stamp) {
  const moment = new Date(stamp);
  document.dispatchEvent(new CustomEvent("clock:set", { detail: moment.getTime() }));
  heardAt = Date.now();
  mended(part);
  if (!failing.size) asOf = moment;
  showAge();
}

// Parts that failed beside one that has an answer now are asked for at once.
function mended(part) {
  if (!failing.delete(part)) return;
  if (!failing.size) tell("Current again");
  for (const other of failing) {
    document.getElementById(other)?.dispatchEvent(new CustomEvent("refresh", { bubbles: true }));
  }
  showAge();
}

function lost(part) {
  if (!failing.size) tell(`Not current since ${time(asOf)}`);
  failing.add(part);
  showAge();
}

document.addEventListener("htmx:afterRequest", (event) => {
  const part = polled(event);
  if (!part) return;
  const stamp = event.detail.xhr?.getResponseHeader?.("Switchgear-Now");
  if (event.detail.successful && stamp) heard(part, stamp);
  else if (event.detail.successful) mended(part);
  else if (!event.detail.successful && event.detail.xhr?.status !== 200) lost(part);
});
// Whoever is signed out is asked for less often: the next answer would be the same.
const SIGNED_OUT = 15_000; // ms
let signedOutAt = -Infinity;

function isBackground(event) {
  return event.detail.requestConfig.headers["Switchgear-Background"] === "1";
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.xhr?.status === 401) signedOutAt = performance.now();
  else if (event.detail.successful) signedOutAt = -Infinity;
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (isBackground(event) && performance.now() - signedOutAt < SIGNED_OUT) event.preventDefault();
  else if (!event.target.closest?.("[data-effect]")) searching = event.target.id === "search";
  // Nobody looks at it, and it is asked for again as soon as somebody does.
  else if (document.hidden) event.preventDefault();
});
// What the page asks by itself is nobody's doing: a session does not live longer by it.
document.addEventListener("htmx:configRequest", (event) => {
  const cause = event.detail.triggeringEvent;
  const polls = !cause && event.detail.elt.matches("[hx-trigger*='every']");
  if (polls || cause?.type === "refresh") event.detail.headers["Switchgear-Background"] = "1";
});
document.addEventListener("htmx:afterSettle", () => {
  const title = document.getElementById("live")?.dataset.title;
  if (title && document.title !== title) document.title = title;
  showAge();
  document.dispatchEvent(new Event("clock:tick"));
});

/* --- what needs to know how things stand waits until that is known; engaging never does */

const NEEDS = "[data-fresh]";

function block(stale) {
  for (const element of document.querySelectorAll(stale ? NEEDS : "[data-blocked]")) {
    element.toggleAttribute("data-blocked", stale);
    if (stale) element.setAttribute("aria-disabled", "true");
    else element.removeAttribute("aria-disabled");
  }
}

function hold(event) {
  const wanted = event.type === "submit" ? event.submitter?.closest(NEEDS) : event.target.closest(NEEDS);
  if (!wanted || !isStale()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const message = `What is shown is not current since ${time(asOf)}, so this waits: look again when it is. Engaging does not: press it, and it opens or says how to stop something without this page.`;
  document.dispatchEvent(new CustomEvent("switchgear:say", { detail: { message } }));
  refresh();
}

document.addEventListener("click", hold, true);
document.addEventListener("submit", hold, true);

// A tab that was asleep, or came back from the history, asks at once.
function refresh() {
  if (!document.hidden) document.body.dispatchEvent(new Event("refresh"));
}

document.addEventListener("visibilitychange", () => {
  showAge();
  signedOutAt = -Infinity; // the sign-in may have been in another tab
  refresh();
});
let focusedAt = 0;
window.addEventListener("focus", () => {
  signedOutAt = -Infinity;
  if (Date.now() - focusedAt > 2_000) refresh();
  focusedAt = Date.now();
});
setInterval(showAge, 1_000);
document.addEventListener("switchgear:times", () => setTimeout(showAge));
window.addEventListener("online", refresh);
window.addEventListener("offline", () => lost("live"));
window.addEventListener("pageshow", (event) => event.persisted && refresh());
const first = Number(document.querySelector("[data-now]")?.dataset.now);
if (first) asOf = new Date(first);
showAge();
