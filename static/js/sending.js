// Shows on a button, from the first frame after the press, that its form is being sent.

/** @type {WeakMap<Element, ChildNode[]>} */
const idleLabels = new WeakMap();
const announcer = document.querySelector("#dialog [data-announcer]");

/** @param {HTMLFormElement} form @param {HTMLElement | null} submitter */
function showSending(form, submitter) {
  const button = submitter?.closest("[data-once]") ?? form.querySelector("[data-once]");
  if (!button || button.hasAttribute("aria-busy")) return;
  button.setAttribute("aria-busy", "true");
  const label = /** @type {HTMLElement | null} */ (button.querySelector("[data-sending]"));
  if (!label) return;
  idleLabels.set(label, [...label.childNodes]);
  label.textContent = label.dataset.sending;
  if (form.closest("dialog")) announcer.textContent = label.dataset.sending;
}

/** @param {ParentNode} root */
function clearSending(root) {
  for (const button of root.querySelectorAll("[data-once][aria-busy]")) {
    button.removeAttribute("aria-busy");
    const label = /** @type {HTMLElement | null} */ (button.querySelector("[data-sending]"));
    if (label) label.replaceChildren(...idleLabels.get(label));
  }
}

// htmx sends a form from its own listener, which may run before the next one.
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, requestConfig } = event.detail;
  if (elt instanceof HTMLFormElement && requestConfig.verb === "post") {
    showSending(elt, requestConfig.triggeringEvent?.submitter);
  }
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.elt instanceof HTMLFormElement) clearSending(event.detail.elt);
});

// Forms that the browser sends itself.
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!event.defaultPrevented) showSending(form, event.submitter);
});
window.addEventListener("pageshow", () => clearSending(document));
