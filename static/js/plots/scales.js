// Ranges and ticks of the axes of plots; few enough to be legible.

import { formatInZone } from "./formatting.js";

const RATES = [
  [0, 1, 2, 5, 10, 20, 50, 100],
  [0, 1, 5, 20, 100, 500, 2000, 10000],
  [0, 1, 10, 100, 1000, 10000],
];
const STEPS = [0.25, 0.5, 1, 2, 5];
const MAX_RATES = 6;
const MAX_LEVELS = 5;
const DAY_SECONDS = 86400;
const MARGIN_RATIO = 0.1; // of the data's span, before it
const MIN_SECONDS = 1800;

// Ticks of burn rates, on a nearly logarithmic scale.
/** @param {number} top */
export function rateTicks(top) {
  return RATES.map((all) => all.filter((one) => one <= top)).find((within) => within.length <= MAX_RATES);
}

/** @param {number} least */
function levelStep(least) {
  for (let ten = 1; ; ten *= 10)
    for (const one of STEPS) {
      const step = one * ten;
      if (Math.ceil(-least / step - 1e-9) + Math.floor(1 / step) < MAX_LEVELS) return step;
    }
}

// Lowest tick of the remaining budget; the highest is 1.
/** @param {number} least */
export function lowestLevel(least) {
  if (least >= 0) return 0;
  const step = levelStep(least);
  return -Math.ceil(-least / step - 1e-9) * step;
}

/** @param {number} least */
export function levelTicks(least) {
  const step = levelStep(Math.min(least, 0));
  const found = [];
  for (let place = Math.round(lowestLevel(least) / step); place * step <= 1 + 1e-9; place++) found.push(place * step);
  return found;
}

/** @param {number[]} times @param {PlotLine[]} lines @returns {number | undefined} Undefined if no value is known. */
export function firstKnown(times, lines) {
  return times.find((_, place) => lines.some((line) => line.values[place] != null));
}

// Range of the data with a margin, if it begins much later than the requested range; else null.
/** @param {number[]} times @param {PlotLine[]} lines */
export function fittedRange(times, lines) {
  const first = firstKnown(times, lines);
  const last = times[times.length - 1];
  const begin = Math.min(first - (last - first) * MARGIN_RATIO, last - MIN_SECONDS);
  return begin > times[0] ? [begin, last] : null;
}

/** @param {number[]} splits */
export function timeLabels(splits) {
  const wide = splits.length > 1 && splits[1] - splits[0] >= DAY_SECONDS / 2;
  let before = "";
  return splits.map((at) => {
    const date = formatInZone(at, { day: "numeric", month: "short" });
    const time = formatInZone(at, { hour: "2-digit", minute: "2-digit" });
    const first = date !== before;
    before = date;
    return wide ? date : first && time === "00:00" ? date : time;
  });
}
