// Formatting of times, rates and ratios in plots.

// UTC if chosen, else the user's zone.
const zone = () => (document.documentElement.dataset.times === "utc" && "UTC") || document.documentElement.dataset.zone || "UTC";
export const UNKNOWN = "unknown";

/** @param {number} seconds @param {Intl.DateTimeFormatOptions} options */
export function formatInZone(seconds, options) {
  return new Date(seconds * 1000).toLocaleString("en-GB", { timeZone: zone(), hourCycle: "h23", ...options });
}

/** @param {number} seconds */
export const formatTime = (seconds) => formatInZone(seconds, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** @param {number | null} value */
export function formatRate(value) {
  if (value == null) return UNKNOWN;
  const size = Math.abs(value);
  if (size && size < 0.01) return "< 0.01×";
  const rounded = Number(size < 100 ? value.toPrecision(3) : value.toFixed(0));
  return `${rounded.toLocaleString("en-GB", { maximumFractionDigits: 4 })}×`;
}

// Rounded down, so that the remaining budget is never overstated.
/** @param {number | null} value */
export function formatShare(value) {
  if (value == null) return UNKNOWN;
  const percent = Math.abs(value * 100);
  const digits = percent < 1 ? 100 : percent < 10 ? 10 : 1;
  return `${value < 0 ? "−" : ""}${(Math.floor(percent * digits + 1e-9) / digits).toLocaleString("en-GB")} %`;
}

/** @param {number | null} value */
export const formatLeft = (value) => (value == null ? UNKNOWN : `${formatShare(value)} left`);

/** @param {string} name */
export const formatWindow = (name) => name.replace(/([0-9])([a-z])/, "$1 $2").replace(/ m$/, " min");

/** @param {number} seconds */
export function formatStep(seconds) {
  const minutes = seconds / 60;
  return minutes < 60 ? `a point every ${minutes} min` : `a point every ${minutes / 60} h`;
}

// Date whose local fields are those of the zone, for uPlot, which has no time zones.
/** @param {number} seconds @returns {Date} */
export const toZone = (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), zone());
