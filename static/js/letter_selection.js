// The selection of letters in a list: the checkbox for the whole page, and the number of selected letters.
// Without this module the checkboxes and buttons are a plain form.

/** @returns {HTMLInputElement[]} */
function letterBoxes() {
  return /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll("[data-selection] input[name='ids']")]);
}

function countSelected() {
  const form = document.querySelector("[data-selection]");
  const label = form?.querySelector("[data-selected]");
  const page = form?.querySelector("[data-select-page]");
  if (!form || !label || !page) return;
  page.hidden = false;
  const boxes = letterBoxes();
  const all = /** @type {HTMLInputElement} */ (form.querySelector("input[name='all']")).checked;
  const selected = boxes.filter((box) => box.checked).length;
  for (const box of boxes) box.disabled = all;
  page.querySelector("input").checked = selected > 0 && selected === boxes.length;
  const text = all ? "all selected" : `${selected} selected`;
  if (label.textContent !== text) label.textContent = text;
  const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (form.querySelectorAll("button[name='action']"));
  for (const button of buttons) button.disabled = !all && !selected;
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-selection]");
  if (!form) return;
  if (event.target.closest("[data-select-page]")) {
    const { checked } = /** @type {HTMLInputElement} */ (event.target);
    for (const box of letterBoxes()) box.checked = checked;
  }
  countSelected();
});
document.addEventListener("htmx:afterSwap", countSelected);
document.addEventListener("htmx:afterSettle", countSelected);
countSelected();
