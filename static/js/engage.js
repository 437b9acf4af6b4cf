// Forms that engage, extend and release. Checks the length of the reason during typing, names the
// target on the button, fills in suggestions, applies the scope's default policy until one is chosen,
// and clears the errors of a field when it changes.

// Hangul, kana, Han and full-width forms, then pictographs.
const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\u33ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\ua000-\\ua4cf" +
    "\\ua960-\\ua97f\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f\\uff01-\\uff60\\uffe0-\\uffe6" +
    "\\u{1f300}-\\u{1f64f}\\u{1f680}-\\u{1f6ff}\\u{1f900}-\\u{1f9ff}\\u{20000}-\\u{3fffd}]",
  "u",
);
const ZERO_WIDTH = /[\p{Mn}\p{Me}\p{Cc}\p{Cf}]/u;

// A preview of the server's count; the server enforces the rule.
/** @param {string} text */
function countColumns(text) {
  let sum = 0;
  for (const character of text.normalize("NFC").trim().replace(/\s+/gu, " ")) {
    if (!ZERO_WIDTH.test(character)) sum += WIDE.test(character) ? 2 : 1;
  }
  return sum;
}

/** @param {HTMLElement} field */
function updateCounter(field) {
  const least = Number(field.dataset.least);
  const area = field.querySelector("textarea");
  const have = countColumns(area.value);
  const meter = field.querySelector("[data-columns]");
  const enough = have >= least;
  meter.textContent = enough ? `${area.value.length}/2000` : `At least ${least} characters`;
  meter.classList.toggle("meter__good", have > 0 && enough);
}

/**
 * A form that engages a switch: its controls by name.
 * @typedef {HTMLFormElement & { elements: EngageControls }} EngageForm
 * @typedef {{ scope: HTMLSelectElement, on_expiry: HTMLSelectElement } & Record<"key" | "reason" | "confirm", HTMLInputElement>} EngageControls
 */

/** @param {EngageForm} form */
function updateVerb(form) {
  const verb = form.querySelector("[data-verb]");
  if (verb.closest("[aria-busy]")) return;
  const scope = form.elements.scope;
  const key = scope.selectedOptions[0].dataset.onlyKey ?? form.elements.key.value.trim();
  verb.textContent = key ? `Engage ${scope.value}:${key}` : "Engage";
}

// Errors are about the previous value; the plan shows the current ones.
/** @param {Element} input */
function clearErrors(input) {
  input.removeAttribute("aria-invalid");
  for (const error of input.closest(".field")?.querySelectorAll(".field__error") ?? []) error.remove();
}

/** @param {EngageForm} form */
function applyScopeDefault(form) {
  const { onlyKey, default: policy } = form.elements.scope.selectedOptions[0].dataset;
  if (onlyKey || !form.dataset.chosen) form.elements.on_expiry.value = policy;
}

// A complete id typed into the key field also selects the scope. A scope that has only one key is
// selected once that key is complete, as its form has no key field.
const SWITCH_ID = /^\s*([a-z]+)\s*:\s*(.*)$/is;

/** @param {EngageForm} form */
function splitKey(form) {
  const { scope, key } = form.elements;
  const [, name, rest] = SWITCH_ID.exec(key.value) ?? [];
  const option = [...scope.options].find((each) => each.value === name?.toLowerCase());
  if (!option) return;
  const { onlyKey } = option.dataset;
  if (onlyKey && rest.trim().toLowerCase() !== onlyKey) return;
  key.value = onlyKey ? "" : rest.trim();
  selectScope(form, option.value);
  if (onlyKey) form.elements.confirm.focus();
}

/** @param {EngageForm} form @param {string} scope */
function selectScope(form, scope) {
  form.elements.scope.value = scope;
  form.elements.scope.dispatchEvent(new Event("input", { bubbles: true }));
}

// Select a suggested switch, or the same key in another scope; keep what was typed.
document.addEventListener("click", (event) => {
  const link = event.target.closest("form[data-engage] a[data-scope]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const form = /** @type {EngageForm} */ (link.closest("form"));
  const { key, reason } = form.elements;
  if (link.dataset.key) key.value = link.dataset.key;
  selectScope(form, link.dataset.scope);
  if (!link.dataset.key) key.focus();
  // On a phone, focusing a field would open the keyboard over the suggested reasons.
  else if (!window.matchMedia("(pointer: coarse)").matches) reason.focus();
  else document.getElementById("dialog-title")?.focus();
});

// Following the link instead would change the URL's fragment, which closes the dialog.
document.addEventListener("click", (event) => {
  const link = /** @type {HTMLAnchorElement | null} */ (event.target.closest("a[data-adds-gate]"));
  const editor = link && /** @type {HTMLDetailsElement | null} */ (document.querySelector(link.hash));
  if (!editor) return;
  event.preventDefault();
  editor.open = true;
  editor.querySelector(".plan-step__add select")?.focus();
});

/** @param {EngageForm} form @param {string} reason */
function fillReason(form, reason) {
  form.elements.reason.value = reason;
  clearErrors(form.elements.reason);
  updateCounter(form.elements.reason.closest("[data-reason]"));
}

/** @param {EngageForm} form */
function uncheckOtherReasons(form) {
  const choices = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name='suggested_reason']"));
  for (const choice of choices) {
    choice.checked = choice.value === form.elements.reason.value;
  }
}

document.addEventListener("input", (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const field = input.closest("[data-reason]");
  if (field) updateCounter(field);
  const form = /** @type {EngageForm | null} */ (input.closest("form[data-engage]"));
  if (!form) return;
  clearErrors(input);
  if (input.name === "on_expiry") form.dataset.chosen = "true";
  if (input.name === "scope") applyScopeDefault(form);
  if (input.name === "key") splitKey(form);
  if (input.name === "suggested_reason") fillReason(form, input.value);
  if (input.name === "reason") uncheckOtherReasons(form);
  updateVerb(form);
});

// Prevent double submits of forms that are not sent by htmx.
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const button = form.querySelector("[data-once]");
  if (!button || form.hasAttribute("hx-post")) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "true";
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

/** @param {ParentNode} root */
function initialize(root) {
  for (const field of root.querySelectorAll("[data-reason]")) updateCounter(field);
  for (const form of /** @type {NodeListOf<EngageForm>} */ (root.querySelectorAll("form[data-engage]"))) {
    updateVerb(form);
    const set = form.elements.on_expiry.value;
    const usual = form.elements.scope.selectedOptions[0].dataset.default;
    if (set !== usual) form.dataset.chosen = "true";
  }
}

document.addEventListener("htmx:load", (event) => initialize(/** @type {HTMLElement} */ (event.target)));
initialize(document);
