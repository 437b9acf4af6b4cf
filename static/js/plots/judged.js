// What was judged last, as the living part of the page has it: what plots call "Now".

export function judged(kind, window) {
  const found = document.getElementById("judged");
  if (!found) return null;
  const { left, rates } = JSON.parse(found.dataset.judged);
  return (kind === "budget" ? left : rates[window]) ?? null;
}
