// The live part of a page: merges refreshes in place, and shows when the content is not current.
//
// `hx-swap="merge"` changes only elements that differ, so that the focus, a selection, an open
// <details> and typed text survive a refresh every two seconds.

const announcer = document.getElementById("announcer");
const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
/** @type {Set<string>} */
const failingParts = new Set(); // ids of parts whose last poll failed
let asOf = new Date();
let lastResponseAt = Date.now(); // by the browser's clock

/* --- merging */

// Attributes that the user changes, which the server does not know. The same goes for elements that
// scripts show, hide or fill.
const KEPT_ATTRIBUTES = new Set(["open", "value", "checked", "selected"]);
const SHOWN_BY_SCRIPT = "[data-gone], [data-copy], [data-shortcuts]";
const FILLED_BY_SCRIPT = "[data-saved]";
const TICKING = "[data-until], [data-since]";

/** @param {HTMLElement} from @param {HTMLElement} to */
function mergeAttributes(from, to) {
  const kept = new Set(KEPT_ATTRIBUTES);
  if (from.matches(TICKING)) kept.add("class");
  if (from.matches(SHOWN_BY_SCRIPT) && from.dataset.gone === to.dataset.gone) kept.add("hidden");
  for (const { name, value } of [...to.attributes]) {
    const field = /** @type {HTMLInputElement} */ (from);
    if (name === "value" && field.type === "hidden") field.value = value;
    if (!kept.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!kept.has(name) && !to.hasAttribute(name)) from.removeAttribute(name);
  }
}

/** @param {any} a @param {any} b */
function sameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
}

/** @param {HTMLElement} from @param {ParentNode} to */
function mergeChildren(from, to) {
  /** @type {Map<string, ChildNode>} */
  const byId = new Map();
  for (const child of from.children) if (child.id) byId.set(child.id, child);
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const { id } = /** @type {Element} */ (/** @type {unknown} */ (wanted));
    const known = id ? byId.get(id) : null;
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

/** @param {any} from @param {any} to two nodes of the same kind */
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

/** @param {() => void} change */
function keepFocus(change) {
  const focused = document.activeElement;
  const container = focused?.closest("[id]");
  change();
  if (document.activeElement === focused || !focused || focused === document.body) return;
  // A row moved or disappeared: focus the same id, else the search, never the top of the page.
  const same = focused.id && document.getElementById(focused.id);
  const neighbour = container && document.getElementById(container.id)?.querySelector("a, button");
  (same || neighbour || document.querySelector("[data-search]") || document.getElementById("main"))?.focus();
}

window.htmx?.defineExtension("merge", {
  isInlineSwap: (style) => style === "merge",
  handleSwap(style, target, fragment) {
    if (style !== "merge") return false;
    const wanted = fragment.firstElementChild ?? fragment;
    const before = { conditions: conditions(), reached: effectSteps() };
    keepFocus(() => merge(target, wanted));
    announceChanges(before, { conditions: conditions(), reached: effectSteps() });
    return [target];
  },
});

/* --- announcing and marking changes */

function conditions() {
  const conditionByName = new Map();
  for (const element of document.querySelectorAll("[data-switch]")) {
    conditionByName.set(element.dataset.switch, element.dataset.condition);
  }
  return conditionByName;
}

// Progress of each effect in coarse steps; announcing every count would be noise.
function effectSteps() {
  const parts = (dialog?.open ? dialog : document).querySelectorAll("[data-reached]");
  return new Map([...parts].map((part) => [part.id, part.dataset.reached]));
}

// An open dialog makes the rest inert, including the page's live region.
/** @param {string} text */
function announceText(text) {
  const place = dialog?.open ? dialog.querySelector("[data-announcer]") : announcer;
  place.textContent = text;
}

const BATCH_MS = 1_000; // a text that is replaced sooner may never be read out
/** @type {string[]} */
let recentTexts = [];
let recentAt = -Infinity;

/** @param {string} text */
function announceBatched(text) {
  recentTexts = performance.now() - recentAt < BATCH_MS ? [...recentTexts, text].slice(-3) : [text];
  recentAt = performance.now();
  announceText(recentTexts.join("; "));
}

document.addEventListener("switchgear:announce", (event) => announceBatched(event.detail.message));

let searching = false;

/** @typedef {{ conditions: Map<string, string>, reached: Map<string, string> }} Shown */

/** @param {Shown} before @param {Shown} after */
function announceChanges(before, after) {
  if (searching) {
    const count = after.conditions.size;
    announceText(count === 1 ? "1 switch" : `${count} switches`);
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
    if ((before.reached.get(id) ?? step) !== step) found.push(readText(document.getElementById(`${id}-said`)));
  }
  if (found.length) announceBatched(found.slice(0, 3).join("; "));
}

// Return an element's text without the line breaks and indentation of its markup.
/** @param {HTMLElement} element */
function readText(element) {
  return element.textContent.replace(/\s+/g, " ").trim();
}

/* --- freshness */

/** @param {Date} moment */
function formatTime(moment) {
  const utc = document.documentElement.dataset.times === "utc";
  const told = moment.toLocaleTimeString("en-GB", { hour12: false, timeZone: utc ? "UTC" : zone });
  return utc ? `${told} UTC` : told;
}

const zone = document.documentElement.dataset.zone || undefined;

// Return the id of the part that a request refreshes; a search refreshes the live part.
/** @param {CustomEvent} event */
function polledPart(event) {
  const part = event.target.closest?.("#live, #alarm, #search, [data-effect]");
  return part?.id === "search" ? "live" : part?.id;
}

// True if no response came for longer than polling allows, without an error: the machine slept, or
// polls and socket are both stuck.
function isSilent() {
  const every = /every (\d+)s/.exec(document.getElementById("live")?.getAttribute("hx-trigger"))?.[1];
  return every !== undefined && Date.now() - lastResponseAt > 2_000 * Math.max(12, Number(every)) + 6_000;
}

function isStale() {
  return failingParts.size > 0 || isSilent();
}

function showAge() {
  for (const part of failingParts) if (!document.getElementById(part)) failingParts.delete(part);
  setBlocked(isStale());
  const labels = document.querySelectorAll("[data-as-of]");
  if (!labels.length) return;
  const stale = isStale();
  for (const label of labels) {
    // A dialog may be newer than the page's last poll.
    const since = formatTime(new Date(Math.max(asOf.getTime(), Number(label.dataset.asOf))));
    label.classList.toggle("as-of--stale", stale);
    label.lastElementChild.textContent = stale ? `Not current since ${since}; trying again` : `As of ${since}`;
  }
  for (const part of document.querySelectorAll("[data-dims]")) part.classList.toggle("is-stale", stale);
}

/** @param {string} part @param {string} stamp */
function handleResponse(part, stamp) {
  const moment = new Date(stamp);
  document.dispatchEvent(new CustomEvent("clock:set", { detail: moment.getTime() }));
  lastResponseAt = Date.now();
  markRecovered(part);
  if (!failingParts.size) asOf = moment;
  showAge();
}

// After one part has recovered, refresh the other failing parts at once.
/** @param {string} part */
function markRecovered(part) {
  if (!failingParts.delete(part)) return;
  if (!failingParts.size) announceBatched("Current again");
  for (const other of failingParts) {
    document.getElementById(other)?.dispatchEvent(new CustomEvent("refresh", { bubbles: true }));
  }
  showAge();
}

/** @param {string} part */
function markFailing(part) {
  if (!failingParts.size) announceBatched(`Not current since ${formatTime(asOf)}`);
  failingParts.add(part);
  showAge();
}

document.addEventListener("htmx:afterRequest", (event) => {
  const part = polledPart(event);
  if (!part) return;
  const stamp = event.detail.xhr?.getResponseHeader?.("Switchgear-Now");
  if (event.detail.successful && stamp) handleResponse(part, stamp);
  else if (event.detail.successful) markRecovered(part);
  else if (!event.detail.successful && event.detail.xhr?.status !== 200) markFailing(part);
});
// While signed out, poll less often: the response would be the same.
const SIGNED_OUT_MS = 15_000;
let signedOutAt = -Infinity;

/** @param {CustomEvent} event */
function isBackground(event) {
  return event.detail.requestConfig.headers["Switchgear-Background"] === "1";
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.xhr?.status === 401) signedOutAt = performance.now();
  else if (event.detail.successful) signedOutAt = -Infinity;
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (isBackground(event) && performance.now() - signedOutAt < SIGNED_OUT_MS) event.preventDefault();
  else if (!event.target.closest?.("[data-effect]")) searching = /** @type {Element} */ (event.target).id === "search";
  // The tab is hidden; it refreshes when it is shown again.
  else if (document.hidden) event.preventDefault();
});
// Mark polls, so that they do not extend the session, and tell which content is shown: the answer is
// 204 if it has not changed. A merge of other content removes the attribute.
document.addEventListener("htmx:configRequest", (event) => {
  const { elt, headers, triggeringEvent: cause } = event.detail;
  const polls = !cause && elt.matches("[hx-trigger*='every']");
  if (!polls && cause?.type !== "refresh") return;
  headers["Switchgear-Background"] = "1";
  if (elt.dataset.digest) headers["Switchgear-Digest"] = elt.dataset.digest;
});
document.addEventListener("htmx:afterSwap", (event) => {
  const digest = event.detail.xhr.getResponseHeader("Switchgear-Digest");
  if (digest) event.detail.target.dataset.digest = digest;
});
document.addEventListener("htmx:afterSettle", () => {
  const title = document.getElementById("live")?.dataset.title;
  if (title && document.title !== title) document.title = title;
  showAge();
  document.dispatchEvent(new Event("clock:tick"));
});

/* --- actions that need current data are blocked while it is stale; engaging never is */

const NEEDS_CURRENT = "[data-fresh]";

/** @param {boolean} stale */
function setBlocked(stale) {
  for (const element of document.querySelectorAll(stale ? NEEDS_CURRENT : "[data-blocked]")) {
    element.toggleAttribute("data-blocked", stale);
    if (stale) element.setAttribute("aria-disabled", "true");
    else element.removeAttribute("aria-disabled");
  }
}

/** @param {MouseEvent | SubmitEvent} event */
function preventIfStale(event) {
  const wanted = event.type === "submit" ? /** @type {SubmitEvent} */ (event).submitter?.closest(NEEDS_CURRENT) : event.target.closest(NEEDS_CURRENT);
  if (!wanted || !isStale()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const message = `This page has not been current since ${formatTime(asOf)}. Try again once it is. You can still engage a switch.`;
  document.dispatchEvent(new CustomEvent("switchgear:toast", { detail: { message } }));
  refresh();
}

document.addEventListener("click", preventIfStale, true);
document.addEventListener("submit", preventIfStale, true);

// Refresh when the tab is shown again, or comes from the history.
function refresh() {
  if (!document.hidden) document.body.dispatchEvent(new Event("refresh"));
}

document.addEventListener("visibilitychange", () => {
  showAge();
  signedOutAt = -Infinity; // the user may have signed in in another tab
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
window.addEventListener("offline", () => markFailing("live"));
window.addEventListener("pageshow", (event) => event.persisted && refresh());
const pageTime = Number(document.querySelector("[data-now]")?.dataset.now);
if (pageTime) asOf = new Date(pageTime);
showAge();
