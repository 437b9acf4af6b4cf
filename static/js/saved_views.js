// Saved views of a list: named filters, saved in this browser for each user. Filters are in the URL's
// query, so a view is a query.

const container = document.querySelector("[data-saved]");
const list = container?.querySelector("[data-list]");
const STORAGE_KEY = `switchgear.saved.${container?.dataset.saved}.${location.pathname}`;
const MAX_VIEWS = 12;
const TRANSIENT = ["page", "since", "before"]; // the position in the list is no part of a view

/**
 * @typedef {{ name: string, query: string }} View
 * @returns {View[]}
 */
function loadViews() {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY)) ?? [];
  } catch {
    return [];
  }
}

/** @param {View[]} views */
function saveViews(views) {
  localStorage.setItem(STORAGE_KEY, JSON.stringify(views.slice(0, MAX_VIEWS)));
  renderViews();
}

function normalizedQuery(search = location.search) {
  const params = new URLSearchParams(search);
  for (const [name, value] of [...params]) if (!value || TRANSIENT.includes(name)) params.delete(name);
  params.sort();
  return params.toString();
}

function renderViews() {
  const views = loadViews();
  const rows = views.map((view) => {
    const row = /** @type {Element} */ (container.querySelector("template").content.firstElementChild.cloneNode(true));
    const link = /** @type {HTMLAnchorElement} */ (row.querySelector("[data-view]"));
    link.href = `${location.pathname}${view.query ? `?${view.query}` : ""}`;
    link.textContent = view.name;
    if (view.query === normalizedQuery()) link.setAttribute("aria-current", "true");
    row.querySelector("[data-name]").textContent = view.name;
    row.querySelector("[data-forget]").addEventListener("click", () => {
      saveViews(loadViews().filter((one) => one.name !== view.name));
      container.querySelector("summary").focus();
    });
    return row;
  });
  list.replaceChildren(...rows);
  list.hidden = !rows.length;
  container.querySelector("details").hidden = !normalizedQuery() || views.some((view) => view.query === normalizedQuery());
  container.hidden = Boolean(list.hidden && container.querySelector("details").hidden);
}

if (container) {
  container.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (document.getElementById("saved-name"));
    const name = field.value.trim();
    if (!name) return;
    saveViews([{ name, query: normalizedQuery() }, ...loadViews().filter((one) => one.name !== name)]);
    field.value = "";
    container.querySelector("details").open = false;
    list.querySelector("[data-view]")?.focus();
    document.dispatchEvent(new CustomEvent("switchgear:toast", { detail: { message: `Saved as ${name}, in this browser.` } }));
  });
  document.addEventListener("htmx:afterSettle", renderViews);
  window.addEventListener("popstate", renderViews);
  renderViews();
}
