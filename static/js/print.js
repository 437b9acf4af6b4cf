// Buttons that print the page; they are hidden without scripts.

for (const button of document.querySelectorAll("button[data-print]")) {
  if (!(button instanceof HTMLButtonElement)) continue;
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}
