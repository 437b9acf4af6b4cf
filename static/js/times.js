// Every moment is told in the person's zone; with a key or the button below the page all of them
// are told in UTC instead, and back. The server gives both texts.

const CHOSEN = "switchgear.times";
const BUTTON = "button[data-times]"; // the page itself says with it what is shown
const zone = document.documentElement.dataset.zone;

function isUtc() {
  return document.documentElement.dataset.times === "utc";
}

function put(root) {
  for (const time of root.querySelectorAll("time[data-utc]")) {
    time.dataset.local ??= time.textContent;
    const text = isUtc() ? time.dataset.utc : time.dataset.local;
    if (time.textContent !== text) time.textContent = text;
  }
}

// What a refresh brings is local again: it is told anew before anybody sees it.
const watcher = new MutationObserver((changes) => {
  for (const { target } of changes) {
    const time = target.parentElement?.closest("time[data-utc]") ?? (target.matches?.("time[data-utc]") ? target : null);
    if (time && time.textContent !== time.dataset.utc) time.dataset.local = time.textContent;
  }
  put(document);
  watcher.takeRecords();
});

function show(utc) {
  if (utc) document.documentElement.dataset.times = "utc";
  else delete document.documentElement.dataset.times;
  watcher.disconnect();
  put(document);
  if (utc) watcher.observe(document.body, { subtree: true, childList: true, characterData: true });
  foot();
}

// Below every page: which zone is shown, and how to turn to the other.
function foot() {
  const button = document.querySelector(BUTTON);
  if (!button) return;
  document.querySelector("[data-times-zone]").textContent = isUtc() ? "UTC" : zone;
  button.textContent = isUtc() ? `Tell them in ${zone}` : "Tell them in UTC";
  button.hidden = false;
}

function toggle() {
  const utc = !isUtc();
  if (utc) localStorage.setItem(CHOSEN, "utc");
  else localStorage.removeItem(CHOSEN);
  show(utc);
  const message = utc ? "Times are told in UTC. u turns back." : `Times are told in ${zone}.`;
  document.dispatchEvent(new CustomEvent("switchgear:say", { detail: { message } }));
}

// Where the zone is UTC there is nothing to choose.
if (zone !== "UTC") {
  document.addEventListener("switchgear:times", toggle);
  document.addEventListener("click", (event) => event.target.closest(BUTTON) && toggle());
  document.addEventListener("htmx:afterSettle", foot);
  show(localStorage.getItem(CHOSEN) === "utc");
}
