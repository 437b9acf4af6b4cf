// Views that a person has saved of a list: its filters under a name, kept in this browser for each
// person. What is narrowed stands in the address, so a view is an address.

const place = document.querySelector("[data-saved]");
const list = place?.querySelector("[data-list]");
const STORE = `switchgear.saved.${place?.dataset.saved}.${location.pathname}`;
const MAX_VIEWS = 12;
const PASSING = ["page", "since", "before"]; // where one stands in the list is no part of a view

function saved() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? [];
  } catch {
    return [];
  }
}

function store(views) {
  localStorage.setItem(STORE, JSON.stringify(views.slice(0, MAX_VIEWS)));
  show();
}

function query(search = location.search) {
  const asked = new URLSearchParams(search);
  for (const [name, value] of [...asked]) if (!value || PASSING.includes(name)) asked.delete(name);
  asked.sort();
  return asked.toString();
}

function show() {
  const views = saved();
  const rows = views.map((view) => {
    const row = place.querySelector("template").content.cloneNode(true).firstElementChild;
    const link = row.querySelector("[data-view]");
    link.href = `${location.pathname}${view.query ? `?${view.query}` : ""}`;
    link.textContent = view.name;
    if (view.query === query()) link.setAttribute("aria-current", "true");
    row.querySelector("[data-name]").textContent = view.name;
    row.querySelector("[data-forget]").addEventListener("click", () => {
      store(saved().filter((one) => one.name !== view.name));
      place.querySelector("summary").focus();
    });
    return row;
  });
  list.replaceChildren(...rows);
  list.hidden = !rows.length;
  place.querySelector("details").hidden = !query() || views.some((view) => view.query === query());
  place.hidden = list.hidden && place.querySelector("details").hidden;
}

if (place) {
  place.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = document.getElementById("saved-name");
    const name = field.value.trim();
    if (!name) return;
    store([{ name, query: query() }, ...saved().filter((one) => one.name !== name)]);
    field.value = "";
    place.querySelector("details").open = false;
    list.querySelector("[data-view]")?.focus();
    document.dispatchEvent(new CustomEvent("switchgear:say", { detail: { message: `Saved as ${name}, in this browser.` } }));
  });
  document.addEventListener("htmx:afterSettle", show);
  window.addEventListener("popstate", show);
  show();
}
