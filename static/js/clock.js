// Updates countdowns and ages by the server's clock, in the same format as the templates.
// Other modules set the server's time by a `clock:set` event (milliseconds since 1970).

const SOON = 600;
/** @type {[string, number][]} Names and seconds of units, longest first. */
const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
let offset = 0;

function serverNow() {
  return Date.now() + offset;
}

/** @param {number} number */
function padTwo(number) {
  return String(number).padStart(2, "0");
}

/** @param {number} seconds */
function clockText(seconds) {
  const hours = Math.floor(seconds / 3600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = padTwo(seconds % 60);
  return hours ? `${hours}:${padTwo(minutes)}:${rest}` : `${minutes}:${rest}`;
}

/** @param {number} seconds */
function ageText(seconds) {
  const [unit, length] = UNITS.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(seconds / length)} ${unit} ago`;
}

/** @param {Element} element @param {string} text */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {HTMLElement} element @param {ServerTime} now */
function tickCountdown(element, now) {
  const left = (Number(element.dataset.until) - now) / 1000;
  if (element.hasAttribute("data-short")) {
    setText(element, `${Math.max(0, Math.ceil(left))} s`);
    return;
  }
  if (element.hasAttribute("data-rest")) {
    setText(element, clockText(Math.max(0, Math.ceil(left))));
    return;
  }
  // Rounded up before the end and down after it, so that it never shows a second too few.
  setText(element, left > 0 ? clockText(Math.ceil(left)) : `${clockText(Math.floor(-left))} over`);
  element.classList.toggle("countdown--late", left <= 0);
  element.classList.toggle("countdown--soon", left > 0 && left <= SOON);
  element.classList.toggle("countdown--calm", left > SOON);
}

function tick() {
  const now = serverNow();
  for (const element of document.querySelectorAll("[data-until]")) tickCountdown(element, now);
  for (const element of document.querySelectorAll("[data-since]")) {
    setText(element, ageText(Math.max(0, Math.floor((now - Number(element.dataset.since)) / 1000))));
  }
  for (const element of document.querySelectorAll("[data-gone]:not([hidden])")) {
    if (Number(element.dataset.gone) <= now) hideExpired(element);
  }
}

// Hide an expired control; move the focus to the next one.
/** @param {HTMLElement} element */
function hideExpired(element) {
  const focused = element.contains(document.activeElement);
  const next = element.closest("dialog, tr, section")?.querySelector("[data-focus], a[href]");
  element.hidden = true;
  if (focused) next?.focus();
}

function scheduleTick() {
  tick();
  setTimeout(scheduleTick, 1000 - (serverNow() % 1000));
}

document.addEventListener("clock:set", (event) => {
  offset = event.detail - Date.now();
});
document.addEventListener("clock:tick", tick);

const stamp = Number(document.querySelector("[data-now]")?.dataset.now);
// Add the time since the first byte of the page, which the navigation entry tells.
const [navigation] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
if (stamp) offset = stamp + performance.now() - (navigation?.responseStart ?? 0) - Date.now();
scheduleTick();
