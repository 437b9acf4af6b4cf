// Changes as they happen: a socket says which topic changed, and the parts of the page that show it
// are fetched anew, over HTTP as ever. So a page is never more wrong than its last poll: while the
// socket tells of changes, polls are rare; while it does not, they are as frequent as the page says.
//
// A part takes part by `data-topics="switches ramps"`. With `data-quick` its polls stay as frequent
// as they are: it shows more than its topics tell of.

const PARTS = "[data-topics][hx-get]";
const RARE = 12_000; // ms between polls of a part while it is told of changes
const AFTERMATH = 30_000; // after a change services follow, which nobody tells of: polls go on
const AT_MOST_EVERY = 1_000; // of one part, however fast changes come
const SPREAD = 250; // so that a hundred open pages do not ask at the same moment
const PATIENCE = 3_000; // a socket may be away so long without a word
const SILENCE = 50_000; // the server says something every 20 s
const MAX_WAIT_MS = 15_000;

const url = document.body.dataset.live;
const notice = document.getElementById("paused");
const zone = document.documentElement.dataset.zone || undefined;
const fetched = new WeakMap(); // part → when it was last fetched
const due = new Set(); // parts that show less than there is
let socket = null;
let stream = null; // the id of the stream that is listened to
let seqs = {};
let attempts = 0;
let downSince = Date.now(); // or 0
let deafSince = 0; // since when the server itself hears of nothing
let lastWord = 0;
let lastChange = 0;
let timer = 0;

/* --- fetching */

function topicsOf(part) {
  return part.dataset.topics.split(" ");
}

function isTold() {
  return stream !== null && !deafSince;
}

function outdated(concerned, spread = SPREAD) {
  for (const part of document.querySelectorAll(PARTS)) if (concerned(part)) due.add(part);
  if (due.size && !timer) timer = setTimeout(fetchDue, 50 + Math.random() * spread);
}

function fetchDue() {
  timer = 0;
  let again = 0;
  for (const part of due) {
    const rest = (fetched.get(part) ?? 0) + AT_MOST_EVERY - Date.now();
    if (!part.isConnected || document.hidden) {
      due.delete(part); // a page that is shown again asks for everything
    } else if (rest > 0) {
      again = Math.max(again, rest);
    } else if (!part.classList.contains("htmx-request")) {
      due.delete(part);
      part.dispatchEvent(new CustomEvent("refresh", { bubbles: true }));
    }
  }
  if (again) timer = setTimeout(fetchDue, again);
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!part?.matches?.("[hx-get]")) return;
  const cause = event.detail.requestConfig.triggeringEvent;
  const another = cause?.type === "refresh" && cause.target !== document.body && cause.target !== part;
  if (another || (!cause && mayWait(part))) event.preventDefault();
});

// Whether a poll of this part can be left out.
function mayWait(part) {
  if (!part.matches(PARTS) || part.hasAttribute("data-quick") || !isTold()) return false;
  const now = Date.now();
  return now - lastChange > AFTERMATH && now - (fetched.get(part) ?? 0) < RARE;
}

document.addEventListener("htmx:afterRequest", (event) => {
  const part = event.detail.elt?.id === "search" ? document.getElementById("live") : event.detail.elt;
  if (!part?.matches?.(PARTS)) return;
  if (event.detail.successful) fetched.set(part, Date.now());
  // What changed while it was on its way may not be in it.
  if (due.has(part) && !timer) timer = setTimeout(fetchDue, 50);
});

/* --- listening */

function heard(message) {
  lastWord = Date.now();
  if (message.topic === "hello") {
    stream = message.stream;
    seqs = message.seq;
    attempts = 0;
    downSince = 0;
    deafSince = message.live === false ? deafSince || Date.now() : 0;
    outdated(() => true, 2 * SPREAD); // whatever changed before this word was not told
    show();
    return;
  }
  if (message.topic === "heartbeat" && message.live === false && !deafSince) {
    deafSince = Date.parse(message.at);
    show();
  }
  if (!(message.topic in seqs)) return;
  if (message.event !== "resync") seqs[message.topic] = message.seq;
  if (message.topic === "degradation") judge(message);
  lastChange = Date.now();
  // One that was left out concerns the same parts as the one that came.
  outdated((part) => topicsOf(part).includes(message.topic));
}

function judge(message) {
  const away = message.data?.effects?.some((effect) => effect.what === "redis") ?? false;
  if (!away) deafSince = 0;
  else if (!deafSince) deafSince = Date.parse(message.at);
  show();
}

function connect() {
  socket = new WebSocket(url.replace(/^\//, `${location.origin.replace(/^http/, "ws")}/`));
  lastWord = Date.now();
  socket.addEventListener("message", (event) => heard(JSON.parse(event.data)));
  socket.addEventListener("close", lost);
}

function lost(event) {
  if (event.target !== socket) return;
  const wasTold = stream !== null;
  socket = stream = null;
  downSince ||= Date.now();
  // Whoever is signed out learns it by the next request.
  if (wasTold) outdated(() => true, 2 * SPREAD);
  attempts += 1;
  const wait = Math.min(MAX_WAIT_MS, 500 * 2 ** Math.min(attempts, 10));
  setTimeout(() => socket ?? connect(), wait * (0.5 + Math.random() / 2));
  setTimeout(show, PATIENCE + 50);
}

function watch() {
  if (socket && Date.now() - lastWord > SILENCE) {
    const silent = socket;
    lost({ target: silent });
    silent.close();
  }
  show();
}

/* --- honest about it */

function show() {
  const down = downSince && Date.now() - downSince > PATIENCE ? downSince : 0;
  const since = down && deafSince ? Math.min(down, deafSince) : down || deafSince;
  notice.hidden = !since;
  if (!since) return;
  const utc = document.documentElement.dataset.times === "utc";
  const local = new Date(since).toLocaleTimeString("en-GB", { hour12: false, timeZone: utc ? "UTC" : zone });
  const at = utc ? `${local} UTC` : local;
  const text = `Live updates paused since ${at}; this page asks by itself.`;
  const words = notice.lastElementChild;
  if (words.textContent !== text) words.textContent = text;
}

if (url) {
  for (const part of document.querySelectorAll(PARTS)) fetched.set(part, Date.now());
  connect();
  setInterval(watch, 1_000);
  window.addEventListener("online", () => socket ?? connect());
  // A page in the history keeps no socket, or the browser would not keep the page.
  window.addEventListener("pagehide", () => socket?.close());
  window.addEventListener("pageshow", (event) => event.persisted && (socket ?? connect()));
}
