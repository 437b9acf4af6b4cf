// One plot, by uPlot: loads data from the server, zooms, and reads out points by keyboard.

import { currentLabel, currentValue } from "./current_values.js";
import { legendButton, timeLabel } from "./legend.js";
import { DASHES, LINE_TOKENS, plotOptions, STYLES } from "./options.js";
import { firstKnown, fittedRange } from "./scales.js";
import { formatLeft, formatTime, formatRate, formatStep, formatWindow } from "./formatting.js";

export const REFRESH_MS = 60000;
const KEYS_ZOOM = 0.5; // factor of the visible range, by + and -
const MIN_SECONDS = 1800;

// Return the range of a plot in the URL: `burn=1764000000-1764003600`, in seconds.
/** @typedef {number[] | null} Range From and to, in seconds since 1970; null for all data. */

/** @param {string} kind @returns {Range} */
function rangeInUrl(kind) {
  const text = new URLSearchParams(location.hash.slice(1)).get(kind) ?? "";
  const [from, to] = (/^(\d{9,11})-(\d{9,11})$/.exec(text) ?? []).slice(1).map(Number);
  return to - from >= MIN_SECONDS ? [from, to] : null;
}

export class Plot {
  /** @param {HTMLElement} section */
  constructor(section) {
    this.section = section;
    this.kind = section.dataset.plot;
    this.area = section.querySelector("[data-plot-area]");
    this.status = section.querySelector("[data-plot-status]");
    this.legend = section.querySelector("[data-plot-legend]");
    this.resetButton = section.querySelector("[data-plot-reset]");
    /** @type {Range} */
    this.zoomed = null;
    /** @type {PlotData | undefined} */
    this.data = undefined;
    /** @type {any} */
    this.chart = undefined;
    this.drawnAt = 0;
    /** @type {Set<string>} */
    this.hidden = new Set(); // windows that are toggled off
    this.requestId = 0;
  }

  async load() {
    const wanted = rangeInUrl(this.kind);
    const near = wanted && (await this.fetchData(wanted));
    const data = near?.times.length ? near : await this.fetchData();
    if (data) this.show(data, near?.times.length ? wanted : null);
    else this.openTable();
  }

  // Without a plot, show the data as a table.
  openTable() {
    this.section.querySelector("[data-plot-body]").hidden = true;
    /** @type {HTMLDetailsElement} */ (this.section.querySelector("[data-plot-table]")).open = true;
  }

  // Without points show that the values are unknown, instead of an empty plot.
  /** @param {PlotData} data @param {Range} zoomed */
  show(data, zoomed) {
    const known = data.times.length > 0;
    this.section.querySelector("[data-plot-body]").hidden = !known;
    const unknown = this.section.querySelector("[data-plot-unknown]");
    if (unknown) unknown.hidden = known;
    if (!known) return;
    const isFirst = !this.data;
    this.zoomed = zoomed;
    this.data = data;
    if (isFirst) this.hidden = new Set(this.shortWindows());
    this.draw();
    if (isFirst) this.addListeners();
  }

  // Short windows are noisy, so they are hidden at first.
  shortWindows() {
    const names = this.data.lines.map((line) => line.name);
    const long = names.filter((name) => /[hd]$/.test(name));
    return long.length ? names.filter((name) => !long.includes(name)) : [];
  }

  /** @param {Range} zoomed @returns {Promise<PlotData | null>} */
  async fetchData(zoomed = this.zoomed, isBackground = false) {
    const url = new URL(this.section.dataset.url, location.href);
    if (zoomed && this.kind === "burn") {
      url.searchParams.delete("range");
      url.searchParams.set("from", String(Math.floor(zoomed[0])));
      url.searchParams.set("to", String(Math.ceil(zoomed[1])));
    }
    const requestId = ++this.requestId;
    /** @type {Record<string, string>} */
    const headers = { Accept: "application/json" };
    if (isBackground) headers["Switchgear-Background"] = "1";
    try {
      const response = await fetch(url, { headers, redirect: "error" });
      if (!response.ok) return null;
      const data = await response.json();
      return requestId === this.requestId ? data : null;
    } catch {
      return null; // The tables have it.
    }
  }

  async refresh(zoomed = this.zoomed, isBackground = false) {
    const data = await this.fetchData(zoomed, isBackground);
    if (data) this.show(data, zoomed);
  }

  // In a wide range a new point takes hours; refresh after half a step.
  isOld() {
    if (!this.data) return true;
    return Date.now() - this.drawnAt >= Math.max(REFRESH_MS, (this.data.step * 1000) / 2) - 1000;
  }

  // Long windows first, so that the lines shown at first have the most distinct styles.
  /** @param {string} name */
  lineStyle(name) {
    const names = this.data.lines.map((line) => line.name);
    const short = this.shortWindows();
    const ordered = [...names.filter((one) => !short.includes(one)), ...short];
    return ordered.indexOf(name) % STYLES;
  }

  draw() {
    const index = this.chart?.cursor.idx;
    this.chart?.destroy();
    const { times, lines } = this.data;
    this.chart = new window.uPlot(plotOptions(this), [times, ...lines.map((line) => line.values)], this.area);
    this.drawnAt = Date.now();
    this.resetButton.hidden = !this.zoomed;
    const detail = { name: this.kind, value: this.zoomed?.join("-") ?? "" };
    document.dispatchEvent(new CustomEvent("switchgear:url-state", { detail }));
    this.renderLegend();
    if (index != null && document.activeElement === this.area) this.selectPoint(Math.min(index, times.length - 1));
  }

  // A canvas does not know `light-dark(#…, #…)`, the value of most tokens.
  /** @param {string} name */
  color(name) {
    const style = getComputedStyle(this.section);
    const value = style.getPropertyValue(name).trim();
    const [, light, dark] = value.match(/^light-dark\((.+), *(.+)\)$/) ?? [];
    if (!light) return value;
    const isDark = style.colorScheme === "light dark" ? matchMedia("(prefers-color-scheme: dark)").matches : style.colorScheme === "dark";
    return isDark ? dark : light;
  }

  // The area has its size from the stylesheet before the plot is drawn, so that nothing moves.
  size() {
    return { width: Math.max(240, this.area.clientWidth), height: this.area.clientHeight };
  }

  // Visible range, or null for all data.
  visibleRange() {
    if (this.kind === "budget") return this.zoomed;
    return this.zoomed ? null : fittedRange(this.data.times, this.data.lines);
  }

  visibleLines() {
    return this.data.lines.filter((line) => !this.hidden.has(line.name));
  }

  maxRate() {
    const most = Math.max(0, ...this.visibleLines().flatMap((line) => line.values.map((one) => one ?? 0)));
    return Math.max(most, ...this.data.limits.map((limit) => limit.value), 1) * 1.35;
  }

  minLevel() {
    return Math.min(...this.data.lines[0].values.filter((one) => one != null));
  }

  /* --- legend */

  renderLegend() {
    const lines = this.kind === "burn" ? this.data.lines : [];
    const buttons = lines.map((line) => {
      const style = this.lineStyle(line.name);
      const look = { token: LINE_TOKENS[style], dash: DASHES[style] };
      return legendButton(line, look, !this.hidden.has(line.name), (pressed) => this.toggleLine(line.name, pressed));
    });
    this.legend.replaceChildren(...buttons, timeLabel());
    this.updateLegend(this.chart);
  }

  /** @param {string} name @param {HTMLElement} button */
  toggleLine(name, button) {
    if (!this.hidden.delete(name)) {
      if (this.visibleLines().length === 1) return;
      this.hidden.add(name);
    }
    button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
    this.draw();
    this.legend.querySelectorAll("button")[this.data.lines.findIndex((line) => line.name === name)].focus();
  }

  // Without a cursor show the latest values; the last point of a line is the worst of its step.
  /** @param {any} chart */
  updateLegend(chart) {
    if (!chart?.data) return;
    const { times, lines, step } = this.data;
    const index = chart.cursor.idx;
    const hasCursor = index != null && chart.cursor.left >= 0;
    /** @param {PlotLine} line */
    const value = (line) => (hasCursor ? line.values[index] : currentValue(this.kind, line.name));
    this.legend.querySelectorAll("b").forEach((one, number) => {
      one.textContent = formatRate(value(lines[number]));
    });
    const label = this.legend.querySelector(".plot__at");
    if (!label) return;
    const rest = this.kind === "budget" ? [formatLeft(value(lines[0]))] : [];
    if (this.kind === "burn" && !hasCursor) rest.push(formatStep(step));
    if (this.kind === "burn" && !hasCursor && this.visibleRange()) rest.push(`no data before ${formatTime(firstKnown(times, lines))}`);
    const marks = hasCursor ? this.marksAt(times[index]).map((mark) => mark.name) : [];
    label.textContent = [hasCursor ? formatTime(times[index]) : currentLabel(), ...rest, ...marks].join(" · ");
  }

  /** @param {number} seconds */
  marksAt(seconds) {
    return this.data.bands.filter((mark) => mark.from <= seconds && (mark.to == null || mark.to >= seconds));
  }

  /* --- zooming */

  /** @param {any} chart */
  zoomToSelection(chart) {
    const { left, width } = chart.select;
    if (width < 8) return;
    const from = chart.posToVal(left, "x");
    const to = chart.posToVal(left + width, "x");
    chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.zoom(from, to);
  }

  /** @param {number} from @param {number} to */
  zoom(from, to) {
    const lack = Math.max(0, MIN_SECONDS - (to - from)) / 2;
    const wanted = [Math.floor(from - lack), Math.ceil(to + lack)];
    if (this.kind === "burn") {
      this.refresh(wanted).then(() => this.announce(`From ${formatTime(wanted[0])} to ${formatTime(wanted[1])}`));
      return;
    }
    this.zoomed = wanted;
    this.draw();
  }

  resetZoom() {
    if (!this.zoomed) return;
    this.zoomed = null;
    this.refresh().then(() => this.announce("The whole range"));
  }

  /** @param {string} text */
  announce(text) {
    this.status.textContent = text;
  }

  /* --- keyboard */

  /** @param {number} wanted */
  selectPoint(wanted) {
    const { times } = this.data;
    const index = Math.max(0, Math.min(times.length - 1, wanted));
    const middle = this.chart.over.clientHeight / 2;
    this.chart.setCursor({ left: this.chart.valToPos(times[index], "x"), top: middle });
    const values = this.visibleLines().map((line) =>
      this.kind === "burn" ? `${formatWindow(line.name)} ${formatRate(line.values[index])}` : formatLeft(line.values[index]),
    );
    const marks = this.marksAt(times[index]).map((mark) => `${mark.kind} ${mark.name}`);
    this.announce([formatTime(times[index]), ...values, ...marks].join(", "));
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const { times } = this.data;
    const last = times.length - 1;
    const index = this.chart.cursor.idx ?? last;
    const far = event.shiftKey ? 10 : 1;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowLeft: index - far,
      ArrowRight: index + far,
      PageUp: index - 30,
      PageDown: index + 30,
      Home: 0,
      End: last,
    };
    if (event.key in moves) this.selectPoint(moves[event.key]);
    else if (event.key === "+" || event.key === "-") this.zoomAround(times[index], event.key === "+" ? KEYS_ZOOM : 1 / KEYS_ZOOM);
    else if (event.key === "Escape" && this.zoomed) this.resetZoom();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} center @param {number} factor */
  zoomAround(center, factor) {
    const { times } = this.data;
    const [from, to] = this.zoomed ?? [times[0], times[times.length - 1]];
    const half = ((to - from) * factor) / 2;
    this.zoom(center - half, Math.min(center + half, Date.now() / 1000));
  }

  addListeners() {
    this.area.addEventListener("keydown", (event) => this.handleKey(event));
    this.resetButton.addEventListener("click", () => this.resetZoom());
    new ResizeObserver(() => {
      if (this.size().width !== this.chart.width) this.draw();
    }).observe(this.area);
  }
}
