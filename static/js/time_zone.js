// Times are shown in the user's zone; a key or the button in the footer switches all of them to UTC
// and back. The server renders both texts.

const STORAGE_KEY = "switchgear.times";
const BUTTON = "button[data-times]"; // the root element has the same attribute
const zone = document.documentElement.dataset.zone;

function isUtc() {
  return document.documentElement.dataset.times === "utc";
}

/** @param {ParentNode} root */
function applyZone(root) {
  for (const time of root.querySelectorAll("time[data-utc]")) {
    time.dataset.local ??= time.textContent;
    const text = isUtc() ? time.dataset.utc : time.dataset.local;
    if (time.textContent !== text) time.textContent = text;
  }
}

// A refresh brings local times again: convert them before the browser paints.
const observer = new MutationObserver((changes) => {
  for (const { target } of changes) {
    const time = target.parentElement?.closest("time[data-utc]") ?? (target instanceof HTMLElement && target.matches("time[data-utc]") ? target : null);
    if (time && time.textContent !== time.dataset.utc) time.dataset.local = time.textContent;
  }
  applyZone(document);
  observer.takeRecords();
});

/** @param {boolean} utc */
function setUtc(utc) {
  if (utc) document.documentElement.dataset.times = "utc";
  else delete document.documentElement.dataset.times;
  observer.disconnect();
  applyZone(document);
  if (utc) observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  updateFooter();
}

// Name the zone in the footer, and the other one on the button.
function updateFooter() {
  const button = document.querySelector(BUTTON);
  if (!button) return;
  document.querySelector("[data-times-zone]").textContent = isUtc() ? "UTC" : zone;
  button.textContent = isUtc() ? `Show in ${zone}` : "Show in UTC";
  button.hidden = false;
}

function toggle() {
  const utc = !isUtc();
  if (utc) localStorage.setItem(STORAGE_KEY, "utc");
  else localStorage.removeItem(STORAGE_KEY);
  setUtc(utc);
  const message = utc ? "Times are shown in UTC. Press u to change back." : `Times are shown in ${zone}.`;
  document.dispatchEvent(new CustomEvent("switchgear:toast", { detail: { message } }));
}

// No choice if the user's zone is UTC.
if (zone !== "UTC") {
  document.addEventListener("switchgear:times", toggle);
  document.addEventListener("click", (event) => event.target.closest(BUTTON) && toggle());
  document.addEventListener("htmx:afterSettle", updateFooter);
  setUtc(localStorage.getItem(STORAGE_KEY) === "utc");
}
