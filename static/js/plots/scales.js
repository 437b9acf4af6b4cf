// Where the axes of plots begin, and where their labels stand: few enough to be read.

import { clock } from "./words.js";

const RATES = [
  [0, 1, 2, 5, 10, 20, 50, 100],
  [0, 1, 5, 20, 100, 500, 2000, 10000],
  [0, 1, 10, 100, 1000, 10000],
];
const STEPS = [0.25, 0.5, 1, 2, 5];
const MAX_RATES = 6;
const MAX_LEVELS = 5;
const A_DAY = 86400;
const AHEAD = 0.1; // of what is known, before it
const MIN_SECONDS = 1800;

// Of burn rates, on a scale that is nearly logarithmic.
export function rates(top) {
  return RATES.map((all) => all.filter((one) => one <= top)).find((within) => within.length <= MAX_RATES);
}

function stepOf(least) {
  for (let ten = 1; ; ten *= 10)
    for (const one of STEPS) {
      const step = one * ten;
      if (Math.ceil(-least / step - 1e-9) + Math.floor(1 / step) < MAX_LEVELS) return step;
    }
}

// What is left of a budget, from the least that is shown to the whole.
export function bottom(least) {
  if (least >= 0) return 0;
  const step = stepOf(least);
  return -Math.ceil(-least / step - 1e-9) * step;
}

export function levels(least) {
  const step = stepOf(Math.min(least, 0));
  const found = [];
  for (let place = Math.round(bottom(least) / step); place * step <= 1 + 1e-9; place++) found.push(place * step);
  return found;
}

// What is known, lest it be a sliver of a span that began long before anything was counted; null where
// that is all of it.
export function fitted(times, lines) {
  const first = times[times.findIndex((_, place) => lines.some((line) => line.values[place] != null))];
  const last = times[times.length - 1];
  const begin = Math.min(first - (last - first) * AHEAD, last - MIN_SECONDS);
  return begin > times[0] ? [begin, last] : null;
}

export function moments(splits) {
  const wide = splits.length > 1 && splits[1] - splits[0] >= A_DAY / 2;
  let before = "";
  return splits.map((at) => {
    const date = clock(at, { day: "numeric", month: "short" });
    const time = clock(at, { hour: "2-digit", minute: "2-digit" });
    const first = date !== before;
    before = date;
    return wide ? date : first && time === "00:00" ? date : time;
  });
}
