// Live updates: the socket names changed topics, and the parts of the page that show them are fetched
// over HTTP. A page is never more outdated than its last poll: while the socket works, polls are rare;
// while it does not, they are as frequent as the page defines.
//
// A part subscribes by `data-topics="switches ramps"`. With `data-quick` it keeps its polling interval,
// because it shows more than its topics.

const LIVE_PARTS = "[data-topics][hx-get]";
const SLOW_POLL_MS = 12_000; // between polls of a part while the socket works
const FAST_POLL_AFTER_CHANGE_MS = 30_000; // services apply a change without a message, so keep polling
const MIN_FETCH_INTERVAL_MS = 1_000; // per part
const JITTER_MS = 250; // so that open pages do not fetch at the same moment
const NOTICE_AFTER_MS = 3_000; // a shorter disconnect shows no notice
const SILENCE_MS = 50_000; // the server sends a message every 20 s
const MAX_WAIT_MS = 15_000;

/**
 * @typedef {object} Message
 * @property {string} topic
 * @property {string} [event]
 * @property {any} [seq] a number; in `hello` the numbers by topic
 * @property {string} [stream]
 * @property {boolean} [live]
 * @property {string} [at]
 * @property {{ effects?: { what: string }[] }} [data]
 */

const url = document.body.dataset.live;
const notice = document.getElementById("paused");
const zone = document.documentElement.dataset.zone || undefined;
/** @type {WeakMap<Element, number>} */
const fetchedAt = new WeakMap(); // part → time of the last fetch
/** @type {Set<HTMLElement>} */
const outdatedParts = new Set(); // parts to fetch
/** @type {WebSocket | null} */
let socket = null;
/** @type {string | null} */
let stream = null; // id of the message stream
/** @type {Record<string, number>} */
let seqs = {}; // topic → number of its last message
let attempts = 0;
let downSince = Date.now(); // or 0
let serverDisconnectedSince = 0; // since then the server itself receives no changes; 0 if it does
let lastMessageAt = 0;
let lastChangeAt = 0;
let timer = 0;

/* --- fetching */

/** @param {HTMLElement} part */
function topicsOf(part) {
  return part.dataset.topics.split(" ");
}

function isReceiving() {
  return stream !== null && !serverDisconnectedSince;
}

/** @param {(part: HTMLElement) => boolean} concerned */
function markOutdated(concerned, spread = JITTER_MS) {
  for (const part of document.querySelectorAll(LIVE_PARTS)) if (concerned(part)) outdatedParts.add(part);
  if (outdatedParts.size && !timer) timer = setTimeout(fetchOutdated, 50 + Math.random() * spread);
}

function fetchOutdated() {
  timer = 0;
  let retryAfter = 0;
  for (const part of outdatedParts) {
    const rest = (fetchedAt.get(part) ?? 0) + MIN_FETCH_INTERVAL_MS - Date.now();
    if (!part.isConnected || document.hidden) {
      outdatedParts.delete(part); // a page fetches everything when it is shown again
    } else if (rest > 0) {
      retryAfter = Math.max(retryAfter, rest);
    } else if (!part.classList.contains("htmx-request")) {
      outdatedParts.delete(part);
      part.dispatchEvent(new CustomEvent("refresh", { bubbles: true }));
    }
  }
  if (retryAfter) timer = setTimeout(fetchOutdated, retryAfter);
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!part?.matches?.("[hx-get]")) return;
  const cause = event.detail.requestConfig.triggeringEvent;
  const isForAnotherPart = cause?.type === "refresh" && cause.target !== document.body && cause.target !== part;
  if (isForAnotherPart || (!cause && canSkipPoll(part))) event.preventDefault();
});

// True if a poll of this part can be skipped.
/** @param {HTMLElement} part */
function canSkipPoll(part) {
  if (!part.matches(LIVE_PARTS) || part.hasAttribute("data-quick") || !isReceiving()) return false;
  const now = Date.now();
  return now - lastChangeAt > FAST_POLL_AFTER_CHANGE_MS && now - (fetchedAt.get(part) ?? 0) < SLOW_POLL_MS;
}

document.addEventListener("htmx:afterRequest", (event) => {
  const part = event.detail.elt?.id === "search" ? document.getElementById("live") : event.detail.elt;
  if (!part?.matches?.(LIVE_PARTS)) return;
  if (event.detail.successful) fetchedAt.set(part, Date.now());
  // A change during the request may not be in the response.
  if (outdatedParts.has(part) && !timer) timer = setTimeout(fetchOutdated, 50);
});

/* --- messages */

/** @param {Message} message */
function handleMessage(message) {
  lastMessageAt = Date.now();
  if (message.topic === "hello") {
    stream = message.stream;
    seqs = message.seq;
    attempts = 0;
    downSince = 0;
    serverDisconnectedSince = message.live === false ? serverDisconnectedSince || Date.now() : 0;
    markOutdated(() => true, 2 * JITTER_MS); // changes before this message were missed
    showNotice();
    return;
  }
  if (message.topic === "heartbeat" && message.live === false && !serverDisconnectedSince) {
    serverDisconnectedSince = Date.parse(message.at);
    showNotice();
  }
  if (!(message.topic in seqs)) return;
  if (message.event !== "resync") seqs[message.topic] = message.seq;
  if (message.topic === "degradation") applyDegradation(message);
  lastChangeAt = Date.now();
  // After a gap in seq the same parts are outdated, so no extra handling is needed.
  markOutdated((part) => topicsOf(part).includes(message.topic));
}

/** @param {Message} message */
function applyDegradation(message) {
  const away = message.data?.effects?.some((effect) => effect.what === "redis") ?? false;
  if (!away) serverDisconnectedSince = 0;
  else if (!serverDisconnectedSince) serverDisconnectedSince = Date.parse(message.at);
  showNotice();
}

function connect() {
  socket = new WebSocket(url.replace(/^\//, `${location.origin.replace(/^http/, "ws")}/`));
  lastMessageAt = Date.now();
  socket.addEventListener("message", (event) => handleMessage(JSON.parse(event.data)));
  socket.addEventListener("close", handleClose);
}

/** @param {{ target: EventTarget }} event */
function handleClose(event) {
  if (event.target !== socket) return;
  const wasReceiving = stream !== null;
  socket = stream = null;
  downSince ||= Date.now();
  // A signed-out user is recognized by the next request.
  if (wasReceiving) markOutdated(() => true, 2 * JITTER_MS);
  attempts += 1;
  const wait = Math.min(MAX_WAIT_MS, 500 * 2 ** Math.min(attempts, 10));
  setTimeout(() => socket ?? connect(), wait * (0.5 + Math.random() / 2));
  setTimeout(showNotice, NOTICE_AFTER_MS + 50);
}

function checkSilence() {
  if (socket && Date.now() - lastMessageAt > SILENCE_MS) {
    const silent = socket;
    handleClose({ target: silent });
    silent.close();
  }
  showNotice();
}

/* --- notice */

function showNotice() {
  const down = downSince && Date.now() - downSince > NOTICE_AFTER_MS ? downSince : 0;
  const since = down && serverDisconnectedSince ? Math.min(down, serverDisconnectedSince) : down || serverDisconnectedSince;
  notice.hidden = !since;
  if (!since) return;
  const utc = document.documentElement.dataset.times === "utc";
  const localTime = new Date(since).toLocaleTimeString("en-GB", { hour12: false, timeZone: utc ? "UTC" : zone });
  const at = utc ? `${localTime} UTC` : localTime;
  const text = `Live updates paused since ${at}; polling instead.`;
  const label = notice.lastElementChild;
  if (label.textContent !== text) label.textContent = text;
}

if (url) {
  for (const part of document.querySelectorAll(LIVE_PARTS)) fetchedAt.set(part, Date.now());
  connect();
  setInterval(checkSilence, 1_000);
  window.addEventListener("online", () => socket ?? connect());
  // Close the socket, or the browser would not keep the page in its history cache.
  window.addEventListener("pagehide", () => socket?.close());
  window.addEventListener("pageshow", (event) => event.persisted && (socket ?? connect()));
}
