// Latest evaluated values, from the live part of the page; plots show them where no point is chosen.

import { formatTime } from "./formatting.js";

/** @returns {{ at: number | null, current: boolean, left: number | null, rates: Record<string, number> } | null} */
function latest() {
  const element = document.getElementById("evaluation");
  return element ? JSON.parse(element.dataset.evaluation) : null;
}

/** @param {string} kind @param {string} window @returns {number | null} */
export function currentValue(kind, window) {
  const found = latest();
  if (!found) return null;
  return (kind === "budget" ? found.left : found.rates[window]) ?? null;
}

// "Now", or the time of the last evaluation if the server calls it stale.
export function currentLabel() {
  const found = latest();
  if (!found?.at) return "Not evaluated yet";
  return found.current ? "Now" : formatTime(found.at);
}
