// What plots say in words: moments, rates and shares.

// In UTC if somebody has chosen so, else in the person's zone.
const zone = () => (document.documentElement.dataset.times === "utc" && "UTC") || document.documentElement.dataset.zone || "UTC";
export const UNKNOWN = "not known";

export function clock(seconds, options) {
  return new Date(seconds * 1000).toLocaleString("en-GB", { timeZone: zone(), hourCycle: "h23", ...options });
}

export const moment = (seconds) => clock(seconds, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export function rate(value) {
  if (value == null) return UNKNOWN;
  const size = Math.abs(value);
  if (size && size < 0.01) return "× < 0.01";
  return `× ${Number(value.toFixed(size < 1 ? 2 : size < 20 ? 1 : 0)).toLocaleString("en-GB")}`;
}

// Cut, not rounded: what is left is never told as more than it is.
export function share(value) {
  if (value == null) return UNKNOWN;
  const percent = Math.abs(value * 100);
  const digits = percent < 1 ? 100 : percent < 10 ? 10 : 1;
  return `${value < 0 ? "−" : ""}${(Math.floor(percent * digits + 1e-9) / digits).toLocaleString("en-GB")} %`;
}

export const left = (value) => (value == null ? UNKNOWN : `${share(value)} left`);

export const readable = (name) => name.replace(/([0-9])([a-z])/, "$1 $2").replace(/ m$/, " min");

// As a library takes it that knows of no zones.
export const wall = (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), zone());
