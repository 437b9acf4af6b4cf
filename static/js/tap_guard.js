// Ignores taps, clicks, Enter and Space for a moment after the content under them was replaced, so
// that the second tap of a double tap presses nothing. Typing in a field is not affected.

const GUARD_MS = 400;
const TOAST_GUARD_MS = 1_200; // Undo appears where the dialog's buttons were
const TEXT_FIELDS = "textarea, select, input:not([type='radio'], [type='checkbox'], [type='submit'])";
const dialog = document.getElementById("dialog");
const root = document.documentElement;
/** @type {Map<string, number>} */
const timers = new Map();
let isDownIgnored = false; // the pointer went down while taps were ignored

/** @param {string} attribute @param {number} milliseconds */
function setFor(attribute, milliseconds) {
  clearTimeout(timers.get(attribute));
  root.setAttribute(attribute, "");
  timers.set(attribute, setTimeout(() => root.removeAttribute(attribute), milliseconds));
}

function ignoreTaps() {
  setFor("data-taps-ignored", GUARD_MS);
}

function areTapsIgnored() {
  return root.hasAttribute("data-taps-ignored");
}

/** @param {Event} event */
function ignore(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

document.addEventListener("htmx:afterSwap", (event) => {
  const { id } = /** @type {Element} */ (event.target);
  if (id === "dialog-body" || id === "counted") ignoreTaps(); // a new count changes the button of a bulk job
});
dialog.addEventListener("close", () => {
  ignoreTaps();
  setFor("data-toasts-ignored", TOAST_GUARD_MS);
});
// Opening one of these parts changes the button in the footer.
document.addEventListener(
  "toggle",
  (event) => /** @type {Element} */ (event.target).matches(".break-glass, .immediate-release") && ignoreTaps(),
  true,
);

window.addEventListener("pointerdown", () => (isDownIgnored = areTapsIgnored()), true);
window.addEventListener(
  "click",
  (event) => {
    const isLateTap = event.detail > 0 && isDownIgnored;
    if (event.isTrusted && (areTapsIgnored() || isLateTap)) ignore(event);
  },
  true,
);
window.addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    const target = /** @type {Element} */ (event.target);
    const isTyping = target.matches("textarea") || (event.key === " " && target.matches(TEXT_FIELDS));
    if (!isTyping && dialog.contains(target) && (areTapsIgnored() || event.repeat)) ignore(event);
  },
  true,
);
