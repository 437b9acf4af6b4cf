// The command palette. The server searches, and lists only what the user may do.

const palette = /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"));
const input = /** @type {HTMLInputElement | null} */ (document.getElementById("palette-q"));
const list = document.getElementById("palette-list");
const status = palette?.querySelector("[data-announcer]");
const RECENT = `switchgear.recent.${palette?.dataset.user}`;
const MAX_RECENT = 5;
const DEBOUNCE_MS = 40;
const TIMEOUT_MS = 8_000;
const NO_ANSWER = "The console did not respond. You can close this and use the page.";

/** @type {string | null} */
let listedText = null; // the query of the listed results
/** @type {AbortController | null} */
let pendingRequest = null; // AbortController of the request under way
let searchTimer = 0;
let runFirstResult = false; // Enter was pressed before the results came
/** @type {HTMLElement | null} */
let previousFocus = null; // the element to focus after closing

/* --- recent choices */

/** @typedef {{ kind: string, title: string, icon: string, path: string, runs: string }} Choice */

/** @returns {Choice[]} */
function loadRecent() {
  try {
    return JSON.parse(localStorage.getItem(RECENT)) ?? [];
  } catch {
    return [];
  }
}

/** @param {HTMLElement} option */
function saveRecent(option) {
  if (!option.hasAttribute("data-recent")) return;
  const { kind, title, icon, runs = "" } = option.dataset;
  const path = option.getAttribute("href") ?? "";
  const others = loadRecent().filter((one) => one.path !== path || one.runs !== runs);
  localStorage.setItem(RECENT, JSON.stringify([{ kind, title, icon, path, runs }, ...others].slice(0, MAX_RECENT)));
}

// Recent commands appear only if listed, since they may no longer be allowed; links appear always.
function showRecent() {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById("palette-recent"));
  const group = /** @type {DocumentFragment} */ (template.content.cloneNode(true)).firstElementChild;
  const [row] = group.querySelectorAll("[role='option']");
  row.remove();
  for (const one of loadRecent()) {
    const command = one.kind === "Page" || one.kind === "Action";
    const options = [...list.querySelectorAll("[role='option']")];
    const present = options.find((option) => (option.getAttribute("href") ?? "") === one.path && (option.dataset.runs ?? "") === one.runs);
    if (command && present) group.append(present);
    else if (!command) group.append(buildRow(/** @type {HTMLElement} */ (row.cloneNode(true)), one));
  }
  if (group.querySelector("[role='option']")) {
    const favorites = list.querySelector("[data-favorites]");
    if (favorites) favorites.after(group);
    else list.prepend(group);
  }
  for (const empty of list.querySelectorAll("[role='group']")) {
    if (!empty.querySelector("[role='option']")) empty.remove();
  }
}

/** @param {HTMLElement} row @param {Choice} one */
function buildRow(row, one) {
  row.setAttribute("href", one.path);
  Object.assign(row.dataset, { kind: one.kind, title: one.title, icon: one.icon });
  row.querySelector("[data-title]").textContent = one.title;
  row.querySelector("[data-detail]").textContent = one.kind;
  const use = row.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${one.icon}`));
  return row;
}

/* --- searching */

async function search() {
  const text = input.value.trim();
  pendingRequest?.abort();
  const controller = (pendingRequest = new AbortController());
  const timeout = setTimeout(() => controller.abort(new Error("late")), TIMEOUT_MS);
  try {
    const url = `${palette.dataset.url}?${new URLSearchParams({ q: text })}`;
    const response = await fetch(url, { headers: { "HX-Request": "true" }, signal: controller.signal, redirect: "error" });
    if (response.status === 401) {
      showFailure("You are signed out. Sign in again to search.");
      return;
    }
    if (!response.ok) throw new Error(String(response.status));
    showResults(text, new DOMParser().parseFromString(await response.text(), "text/html").body);
  } catch (error) {
    if (/** @type {Error} */ (error).name !== "AbortError") showFailure(NO_ANSWER);
  } finally {
    clearTimeout(timeout);
  }
}

/** @param {string} text @param {HTMLElement} found */
function showResults(text, found) {
  listedText = text;
  list.replaceChildren(...found.childNodes);
  if (!text) showRecent();
  const options = numberOptions();
  selectOption(options[0]);
  list.scrollTop = 0;
  status.textContent = options.length === 1 ? "1 result" : `${options.length || "No"} results`;
  if (text !== input.value.trim()) return; // more was typed since; Enter was meant for that query
  if (runFirstResult && options[0]) runOption(options[0]);
  runFirstResult = false;
}

/** @param {string} text */
function showFailure(text) {
  runFirstResult = false;
  listedText = null;
  const paragraph = document.createElement("p");
  paragraph.className = "palette__none";
  paragraph.textContent = text;
  list.replaceChildren(paragraph);
  selectOption(null);
  status.textContent = paragraph.textContent;
}

function numberOptions() {
  const options = [...list.querySelectorAll("[role='option']")];
  options.forEach((option, place) => {
    option.id = `palette-option-${place}`;
    option.tabIndex = -1;
  });
  return options;
}

/* --- selecting */

function selectedOption() {
  return list.querySelector("[aria-selected='true']");
}

/** @param {HTMLElement | null} option */
function selectOption(option) {
  selectedOption()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) input.setAttribute("aria-activedescendant", option.id);
  else input.removeAttribute("aria-activedescendant");
}

/** @param {number} by */
function moveSelection(by) {
  const options = [...list.querySelectorAll("[role='option']")];
  if (!options.length) return;
  const at = options.indexOf(selectedOption());
  selectOption(options[(at + by + options.length) % options.length]);
}

/** @param {HTMLElement} option */
function runOption(option) {
  saveRecent(option);
  const { runs } = option.dataset;
  const path = option.getAttribute("href");
  const inDialog = option.hasAttribute("data-in-dialog");
  const opener = previousFocus;
  palette.close();
  if (runs) document.dispatchEvent(new CustomEvent(`switchgear:${runs}`));
  else if (inDialog) document.dispatchEvent(new CustomEvent("switchgear:open", { detail: { path, from: opener } }));
  else location.assign(path);
}

function handleEnter() {
  if (listedText !== input.value.trim()) runFirstResult = true; // the list is of an earlier query
  else if (selectedOption()) runOption(selectedOption());
}

/** @type {Record<string, number>} */
const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5 };

input?.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key in MOVES) moveSelection(MOVES[event.key]);
  else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) handleEnter();
  else return;
  event.preventDefault();
});

input?.addEventListener("input", () => {
  runFirstResult = false;
  clearTimeout(searchTimer);
  searchTimer = setTimeout(search, DEBOUNCE_MS);
});

list?.addEventListener("click", (event) => {
  const option = event.target.closest("[role='option']");
  if (!option || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  runOption(option);
});

/* --- opening */

function openPalette() {
  if (!palette?.showModal || document.querySelector("dialog[open]")) return;
  previousFocus = /** @type {HTMLElement} */ (document.activeElement);
  input.value = "";
  listedText = null;
  palette.showModal();
  input.focus();
  search();
}

palette?.addEventListener("close", () => {
  pendingRequest?.abort();
  clearTimeout(searchTimer);
  runFirstResult = false;
  if (previousFocus?.isConnected && previousFocus !== document.body) previousFocus.focus();
});
palette?.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey || event.metaKey === event.ctrlKey) return;
  event.preventDefault();
  if (palette?.open) palette.close();
  else openPalette();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-palette]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (!palette?.showModal) return;
  event.preventDefault();
  openPalette();
});
