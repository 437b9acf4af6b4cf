// The palette: type what you want. Keyboard only if you like; the list is the server's, which knows
// what you may do.

const palette = document.getElementById("palette");
const input = document.getElementById("palette-q");
const list = document.getElementById("palette-list");
const status = palette?.querySelector("[data-announcer]");
const RECENT = `switchgear.recent.${palette?.dataset.user}`;
const MAX_RECENT = 5;
const PAUSE = 40; // ms after a key, so that a fast typist asks once
const PATIENCE = 8_000; // ms
const NO_ANSWER = "The console did not answer. What is on the page still works.";

let shown = null; // the text that the list is of
let asked = null; // what is on its way
let timer = 0;
let wantsFirst = false; // Enter was pressed before the answer came
let from = null; // what had the focus before

/* --- what was chosen lately */

function recent() {
  try {
    return JSON.parse(localStorage.getItem(RECENT)) ?? [];
  } catch {
    return [];
  }
}

function remember(option) {
  if (!option.hasAttribute("data-keeps")) return;
  const { kind, title, icon, runs = "" } = option.dataset;
  const path = option.getAttribute("href") ?? "";
  const others = recent().filter((one) => one.path !== path || one.runs !== runs);
  localStorage.setItem(RECENT, JSON.stringify([{ kind, title, icon, path, runs }, ...others].slice(0, MAX_RECENT)));
}

// Commands that are not in the list are not allowed any more; things everybody may see.
function putRecent() {
  const template = document.getElementById("palette-recent");
  const group = template.content.cloneNode(true).firstElementChild;
  const [row] = group.querySelectorAll("[role='option']");
  row.remove();
  for (const one of recent()) {
    const command = one.kind === "Page" || one.kind === "Action";
    const options = [...list.querySelectorAll("[role='option']")];
    const present = options.find((option) => (option.getAttribute("href") ?? "") === one.path && (option.dataset.runs ?? "") === one.runs);
    if (command && present) group.append(present);
    else if (!command) group.append(made(row.cloneNode(true), one));
  }
  if (group.querySelector("[role='option']")) list.prepend(group);
  for (const empty of list.querySelectorAll("[role='group']")) {
    if (!empty.querySelector("[role='option']")) empty.remove();
  }
}

function made(row, one) {
  row.setAttribute("href", one.path);
  Object.assign(row.dataset, { kind: one.kind, title: one.title, icon: one.icon });
  row.querySelector("[data-title]").textContent = one.title;
  row.querySelector("[data-detail]").textContent = one.kind;
  const use = row.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${one.icon}`));
  return row;
}

/* --- asking */

async function ask() {
  const text = input.value.trim();
  asked?.abort();
  const mine = (asked = new AbortController());
  const late = setTimeout(() => mine.abort(new Error("late")), PATIENCE);
  try {
    const url = `${palette.dataset.url}?${new URLSearchParams({ q: text })}`;
    const answer = await fetch(url, { headers: { "HX-Request": "true" }, signal: mine.signal, redirect: "error" });
    if (answer.status === 401) {
      failed("You are signed out: sign in, and come back.");
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    put(text, new DOMParser().parseFromString(await answer.text(), "text/html").body);
  } catch (error) {
    if (error.name !== "AbortError") failed(NO_ANSWER);
  } finally {
    clearTimeout(late);
  }
}

function put(text, found) {
  shown = text;
  list.replaceChildren(...found.childNodes);
  if (!text) putRecent();
  const options = numbered();
  choose(options[0]);
  list.scrollTop = 0;
  status.textContent = options.length === 1 ? "1 found" : `${options.length || "Nothing"} found`;
  if (text !== input.value.trim()) return; // more was typed since: Enter meant the list of that
  if (wantsFirst && options[0]) run(options[0]);
  wantsFirst = false;
}

function failed(text) {
  wantsFirst = false;
  shown = null;
  const said = document.createElement("p");
  said.className = "palette__none";
  said.textContent = text;
  list.replaceChildren(said);
  choose(null);
  status.textContent = said.textContent;
}

function numbered() {
  const options = [...list.querySelectorAll("[role='option']")];
  options.forEach((option, place) => {
    option.id = `palette-option-${place}`;
    option.tabIndex = -1;
  });
  return options;
}

/* --- choosing */

function chosen() {
  return list.querySelector("[aria-selected='true']");
}

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) input.setAttribute("aria-activedescendant", option.id);
  else input.removeAttribute("aria-activedescendant");
}

function move(by) {
  const options = [...list.querySelectorAll("[role='option']")];
  if (!options.length) return;
  const at = options.indexOf(chosen());
  choose(options[(at + by + options.length) % options.length]);
}

function run(option) {
  remember(option);
  const { runs } = option.dataset;
  const path = option.getAttribute("href");
  const inDialog = option.hasAttribute("data-in-dialog");
  const opener = from;
  palette.close();
  if (runs) document.dispatchEvent(new CustomEvent(`switchgear:${runs}`));
  else if (inDialog) document.dispatchEvent(new CustomEvent("switchgear:open", { detail: { path, from: opener } }));
  else location.assign(path);
}

function enter() {
  if (shown !== input.value.trim()) wantsFirst = true; // the list is of something else still
  else if (chosen()) run(chosen());
}

const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5 };

input?.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key in MOVES) move(MOVES[event.key]);
  else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) enter();
  else return;
  event.preventDefault();
});

input?.addEventListener("input", () => {
  wantsFirst = false;
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
});

list?.addEventListener("click", (event) => {
  const option = event.target.closest("[role='option']");
  if (!option || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  run(option);
});

/* --- opening */

function open() {
  if (!palette?.showModal || document.querySelector("dialog[open]")) return;
  from = document.activeElement;
  input.value = "";
  shown = null;
  palette.showModal();
  input.focus();
  ask();
}

palette?.addEventListener("close", () => {
  asked?.abort();
  clearTimeout(timer);
  wantsFirst = false;
  if (from?.isConnected && from !== document.body) from.focus();
});
palette?.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey || event.metaKey === event.ctrlKey) return;
  event.preventDefault();
  if (palette?.open) palette.close();
  else open();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-palette]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (!palette?.showModal) return;
  event.preventDefault();
  open();
});
