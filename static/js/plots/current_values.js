// Latest evaluated values, from the live part of the page; plots show them as "Now".

export function currentValue(kind, window) {
  const found = document.getElementById("judged");
  if (!found) return null;
  const { left, rates } = JSON.parse(found.dataset.judged);
  return (kind === "budget" ? left : rates[window]) ?? null;
}
