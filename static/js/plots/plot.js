// One plot, by uPlot: loads data from the server, zooms, and reads out points by keyboard.

import { currentValue } from "./current_values.js";
import { legendButton, timeLabel } from "./legend.js";
import { DASHES, plotOptions, STYLES } from "./options.js";
import { fittedRange } from "./scales.js";
import { formatLeft, formatTime, formatRate, formatWindow } from "./formatting.js";

export const REFRESH_MS = 60000;
const KEYS_ZOOM = 0.5; // factor of the visible range, by + and -
const MIN_SECONDS = 1800;

// Return the range of a plot in the URL: `burn=1764000000-1764003600`, in seconds.
function rangeInUrl(kind) {
  const text = new URLSearchParams(location.hash.slice(1)).get(kind) ?? "";
  const [from, to] = (/^(\d{9,11})-(\d{9,11})$/.exec(text) ?? []).slice(1).map(Number);
  return to - from >= MIN_SECONDS ? [from, to] : null;
}

export class Plot {
  constructor(section) {
    this.section = section;
    this.kind = section.dataset.plot;
    this.area = section.querySelector("[data-plot-area]");
    this.said = section.querySelector("[data-plot-status]");
    this.key = section.querySelector("[data-plot-legend]");
    this.reset = section.querySelector("[data-plot-reset]");
    this.zoomed = null; // [from, to] in seconds
    this.hidden = new Set(); // windows that are toggled off
    this.asked = 0;
  }

  async begin() {
    const wanted = rangeInUrl(this.kind);
    const near = wanted && (await this.ask(wanted));
    const data = near?.times.length ? near : await this.ask();
    if (data) this.show(data, near?.times.length ? wanted : null);
  }

  // Without points show that the values are unknown, instead of an empty plot.
  show(data, zoomed) {
    const known = data.times.length > 0;
    this.section.querySelector("[data-plot-body]").hidden = !known;
    const unknown = this.section.querySelector("[data-plot-unknown]");
    if (unknown) unknown.hidden = known;
    if (!known) return;
    const begins = !this.data;
    this.zoomed = zoomed;
    this.data = data;
    if (begins) {
      this.section.querySelector("[data-plot-table]").open = false;
      this.hidden = new Set(this.quietAtFirst());
    }
    this.draw();
    if (begins) this.listen();
  }

  // Short windows are noisy, so they are hidden at first.
  quietAtFirst() {
    const names = this.data.lines.map((line) => line.name);
    const long = names.filter((name) => /[hd]$/.test(name));
    return long.length ? names.filter((name) => !long.includes(name)) : [];
  }

  async ask(zoomed = this.zoomed, byItself = false) {
    const url = new URL(this.section.dataset.url, location.href);
    if (zoomed && this.kind === "burn") {
      url.searchParams.delete("range");
      url.searchParams.set("from", Math.floor(zoomed[0]));
      url.searchParams.set("to", Math.ceil(zoomed[1]));
    }
    const turn = ++this.asked;
    const headers = { Accept: "application/json" };
    if (byItself) headers["Switchgear-Background"] = "1";
    try {
      const answer = await fetch(url, { headers, redirect: "error" });
      if (!answer.ok) return null;
      const data = await answer.json();
      return turn === this.asked ? data : null;
    } catch {
      return null; // The tables have it.
    }
  }

  async refresh(zoomed = this.zoomed, byItself = false) {
    const data = await this.ask(zoomed, byItself);
    if (data) this.show(data, zoomed);
  }

  // In a wide range a new point takes hours; refresh after half a step.
  isOld() {
    if (!this.data) return true;
    return Date.now() - this.drawnAt >= Math.max(REFRESH_MS, (this.data.step * 1000) / 2) - 1000;
  }

  // Long windows first, so that the lines shown at first have the most distinct styles.
  style(name) {
    const names = this.data.lines.map((line) => line.name);
    const quiet = this.quietAtFirst();
    const ordered = [...names.filter((one) => !quiet.includes(one)), ...quiet];
    return ordered.indexOf(name) % STYLES;
  }

  draw() {
    const at = this.chart?.cursor.idx;
    this.chart?.destroy();
    const { times, lines } = this.data;
    this.chart = new window.uPlot(plotOptions(this), [times, ...lines.map((line) => line.values)], this.area);
    this.drawnAt = Date.now();
    this.reset.hidden = !this.zoomed;
    const detail = { name: this.kind, value: this.zoomed?.join("-") ?? "" };
    document.dispatchEvent(new CustomEvent("switchgear:url-state", { detail }));
    this.showKey();
    if (at != null && document.activeElement === this.area) this.point(Math.min(at, times.length - 1));
  }

  colour(name) {
    return getComputedStyle(this.section).getPropertyValue(name).trim();
  }

  size() {
    const low = this.area.classList.contains("plot__area--low");
    const width = Math.max(240, this.area.clientWidth);
    return { width, height: Math.round(Math.min(low ? 220 : 300, Math.max(190, width * 0.5))) };
  }

  // Visible range, or null for all data.
  seen() {
    if (this.kind === "budget") return this.zoomed;
    return this.zoomed ? null : fittedRange(this.data.times, this.data.lines);
  }

  shown() {
    return this.data.lines.filter((line) => !this.hidden.has(line.name));
  }

  top() {
    const most = Math.max(0, ...this.shown().flatMap((line) => line.values.map((one) => one ?? 0)));
    return Math.max(most, ...this.data.limits.map((limit) => limit.value), 1) * 1.35;
  }

  least() {
    return Math.min(...this.data.lines[0].values.filter((one) => one != null));
  }

  /* --- legend */

  showKey() {
    const lines = this.kind === "burn" ? this.data.lines : [];
    const buttons = lines.map((line) => {
      const style = this.style(line.name);
      const look = { number: style + 1, dash: DASHES[style] };
      return legendButton(line, look, !this.hidden.has(line.name), (pressed) => this.toggle(line.name, pressed));
    });
    this.key.replaceChildren(...buttons, timeLabel());
    this.readout(this.chart);
  }

  toggle(name, button) {
    if (!this.hidden.delete(name)) {
      if (this.shown().length === 1) return;
      this.hidden.add(name);
    }
    button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
    this.draw();
    this.key.querySelectorAll("button")[this.data.lines.findIndex((line) => line.name === name)].focus();
  }

  // Without a cursor show the latest values; the last point of a line is the worst of its step.
  readout(chart) {
    if (!chart?.data) return;
    const { times, lines } = this.data;
    const place = chart.cursor.idx;
    const pointed = place != null && chart.cursor.left >= 0;
    const value = (line) => (pointed ? line.values[place] : currentValue(this.kind, line.name));
    this.key.querySelectorAll("b").forEach((one, number) => {
      one.textContent = formatRate(value(lines[number]));
    });
    const label = this.key.querySelector(".plot__at");
    if (!label) return;
    const rest = this.kind === "budget" ? [formatLeft(value(lines[0]))] : [];
    const marks = pointed ? this.marksAt(times[place]).map((mark) => mark.name) : [];
    label.textContent = [pointed ? formatTime(times[place]) : "Now", ...rest, ...marks].join(" · ");
  }

  marksAt(seconds) {
    return this.data.bands.filter((mark) => mark.from <= seconds && (mark.to == null || mark.to >= seconds));
  }

  /* --- zooming */

  select(chart) {
    const { left: begin, width } = chart.select;
    if (width < 8) return;
    const from = chart.posToVal(begin, "x");
    const to = chart.posToVal(begin + width, "x");
    chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.zoom(from, to);
  }

  zoom(from, to) {
    const lack = Math.max(0, MIN_SECONDS - (to - from)) / 2;
    const wanted = [Math.floor(from - lack), Math.ceil(to + lack)];
    if (this.kind === "burn") {
      this.refresh(wanted).then(() => this.say(`From ${formatTime(wanted[0])} to ${formatTime(wanted[1])}`));
      return;
    }
    this.zoomed = wanted;
    this.draw();
  }

  whole() {
    if (!this.zoomed) return;
    this.zoomed = null;
    this.refresh().then(() => this.say("The whole span"));
  }

  say(text) {
    this.said.textContent = text;
  }

  /* --- keyboard */

  point(at) {
    const { times } = this.data;
    const place = Math.max(0, Math.min(times.length - 1, at));
    const middle = this.chart.over.clientHeight / 2;
    this.chart.setCursor({ left: this.chart.valToPos(times[place], "x"), top: middle });
    const told = this.shown().map((line) =>
      this.kind === "burn" ? `${formatWindow(line.name)} ${formatRate(line.values[place])}` : formatLeft(line.values[place]),
    );
    const marks = this.marksAt(times[place]).map((mark) => `${mark.kind} ${mark.name}`);
    this.say([formatTime(times[place]), ...told, ...marks].join(", "));
  }

  press(event) {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const { times } = this.data;
    const last = times.length - 1;
    const at = this.chart.cursor.idx ?? last;
    const far = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: at - far, ArrowRight: at + far, PageUp: at - 30, PageDown: at + 30, Home: 0, End: last };
    if (event.key in moves) this.point(moves[event.key]);
    else if (event.key === "+" || event.key === "-") this.scale(times[at], event.key === "+" ? KEYS_ZOOM : 1 / KEYS_ZOOM);
    else if (event.key === "Escape" && this.zoomed) this.whole();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  scale(around, factor) {
    const { times } = this.data;
    const [from, to] = this.zoomed ?? [times[0], times[times.length - 1]];
    const half = ((to - from) * factor) / 2;
    this.zoom(around - half, Math.min(around + half, Date.now() / 1000));
  }

  listen() {
    this.area.addEventListener("keydown", (event) => this.press(event));
    this.reset.addEventListener("click", () => this.whole());
    new ResizeObserver(() => {
      const { width, height } = this.size();
      if (width !== this.chart.width) this.chart.setSize({ width, height });
    }).observe(this.area);
  }
}
