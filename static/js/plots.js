// Plots of burn rates and budgets, by uPlot. What they show stands in tables beside them, which stay
// open where the library or this script is missing. Figures come from the server, finer ones when
// somebody zooms in.

const REFRESH_MS = 60000;
const KEYS_ZOOM = 0.5; // of what is seen, by + and -
const LEAST_SECONDS = 1800;
const MARKS = { exclusion: 0, episode: 1, ramp: 2, alert: 3 }; // drawn in this order
const DASHES = [[], [8, 4], [2, 3], [9, 3, 2, 3], [14, 3], [4, 7]];
const STYLES = DASHES.length;
const RATES = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const zone = document.documentElement.dataset.zone || "UTC";
const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");

/* --- words */

function clock(seconds, options) {
  return new Date(seconds * 1000).toLocaleString("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
}

const moment = (seconds) => clock(seconds, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

function rate(value) {
  if (value == null) return "unknown";
  const size = Math.abs(value);
  if (size && size < 0.01) return "× < 0.01";
  return `× ${Number(value.toFixed(size < 1 ? 2 : size < 20 ? 1 : 0)).toLocaleString("en-GB")}`;
}

// Cut, not rounded: what is left is never told as more than it is.
function share(value) {
  if (value == null) return "unknown";
  const percent = Math.abs(value * 100);
  const digits = percent < 1 ? 100 : percent < 10 ? 10 : 1;
  return `${value < 0 ? "−" : ""}${Math.floor(percent * digits + 1e-9) / digits} %`;
}

// What the address says of a plot: `burn=1764000000-1764003600`, in seconds.
function addressed(kind) {
  const said = new URLSearchParams(location.hash.slice(1)).get(kind) ?? "";
  const [from, to] = (/^(\d{9,11})-(\d{9,11})$/.exec(said) ?? []).slice(1).map(Number);
  return to - from >= LEAST_SECONDS ? [from, to] : null;
}

const readable = (name) => name.replace(/([0-9])([a-z])/, "$1 $2").replace(/ m$/, " min");

/* --- one plot */

class Plot {
  constructor(section) {
    this.section = section;
    this.kind = section.dataset.plot;
    this.area = section.querySelector("[data-plot-area]");
    this.said = section.querySelector("[data-plot-said]");
    this.key = section.querySelector("[data-plot-key]");
    this.reset = section.querySelector("[data-plot-reset]");
    this.tell = this.kind === "burn" ? rate : share;
    this.zoomed = null; // [from, to] in seconds
    this.hidden = new Set(); // windows that somebody has switched off
    this.asked = 0;
  }

  async begin() {
    const wanted = addressed(this.kind);
    const near = wanted && (await this.ask(wanted));
    const data = near?.times.length ? near : await this.ask();
    if (!data || !data.times.length) return;
    this.zoomed = near?.times.length ? wanted : null;
    this.section.querySelector("[data-plot-body]").hidden = false;
    this.section.querySelector("[data-plot-table]").open = false;
    this.data = data;
    this.hidden = new Set(this.quietAtFirst());
    this.draw();
    this.listen();
  }

  // Short windows jump about: they are there for whoever asks for them.
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
    if (!data || !data.times.length) return;
    this.zoomed = zoomed;
    this.data = data;
    this.draw();
  }

  // A point of a wide span takes hours to come; half of that is soon enough.
  isOld() {
    return Date.now() - this.drawnAt >= Math.max(REFRESH_MS, (this.data.step * 1000) / 2) - 1000;
  }

  // Long windows first, so that what is shown at first is told apart best.
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
    this.chart = new window.uPlot(this.options(), [times, ...lines.map((line) => line.values)], this.area);
    this.drawnAt = Date.now();
    this.reset.hidden = !this.zoomed;
    const detail = { name: this.kind, value: this.zoomed?.join("-") ?? "" };
    document.dispatchEvent(new CustomEvent("switchgear:hold", { detail }));
    this.showKey();
    if (at != null && document.activeElement === this.area) this.point(Math.min(at, times.length - 1));
  }

  colour(name) {
    return getComputedStyle(this.section).getPropertyValue(name).trim();
  }

  options() {
    const ink = this.colour("--ink-3");
    const grid = { stroke: this.colour("--plot-grid"), width: 1 };
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const burns = this.kind === "burn";
    const axis = { stroke: ink, font, grid, ticks: { show: false } };
    const zoomed = this.kind === "budget" ? this.zoomed : null;
    return {
      ...this.size(),
      ms: 1e-3,
      tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), zone),
      legend: { show: false },
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 8 },
        points: { size: 8, width: 2 },
        focus: { prox: -1 },
        bind: { dblclick: () => () => this.whole() },
      },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      padding: [14, 12, 0, 4],
      scales: {
        x: { time: true, ...(zoomed ? { min: zoomed[0], max: zoomed[1] } : {}) },
        y: burns ? { distr: 4, asinh: 1, range: () => [0, this.top()] } : { range: () => [this.bottom(), 1] },
      },
      axes: [
        { ...axis, space: 76, values: (_, splits) => this.ticks(splits), size: 30 },
        {
          ...axis,
          size: 54,
          splits: burns ? () => RATES.filter((one) => one <= this.top()) : () => this.levels(),
          values: (_, splits) => splits.map((one) => (burns ? (one ? `× ${one}` : "0") : `${Math.round(one * 100)} %`.replace("-", "−"))),
          filter: (_, splits) => splits, // or every other one of a logarithmic scale is left out
        },
      ],
      series: [{}, ...this.data.lines.map((line) => this.line(line))],
      hooks: {
        drawClear: [(chart) => this.bands(chart)],
        draw: [(chart) => this.limits(chart)],
        setCursor: [(chart) => this.readout(chart)],
        setSelect: [(chart) => this.select(chart)],
      },
    };
  }

  size() {
    const low = this.area.classList.contains("plot__area--low");
    const width = Math.max(240, this.area.clientWidth);
    return { width, height: Math.round(Math.min(low ? 220 : 300, Math.max(190, width * 0.5))) };
  }

  line(line) {
    const style = this.style(line.name);
    const budget = this.kind === "budget";
    return {
      label: line.name,
      show: !this.hidden.has(line.name),
      stroke: this.colour(`--plot-${style + 1}`),
      fill: budget ? this.colour("--plot-fill") : undefined,
      fillTo: budget ? (chart) => chart.scales.y.min : undefined,
      width: style < 2 ? 2 : 1.25,
      dash: budget ? [] : DASHES[style],
      paths: budget ? window.uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: false },
      spanGaps: false,
    };
  }

  shown() {
    return this.data.lines.filter((line) => !this.hidden.has(line.name));
  }

  top() {
    const most = Math.max(0, ...this.shown().flatMap((line) => line.values.map((one) => one ?? 0)));
    return Math.max(most, ...this.data.limits.map((limit) => limit.value), 1) * 1.35;
  }

  bottom() {
    const least = Math.min(...this.data.lines[0].values.filter((one) => one != null));
    return least >= 0 ? 0 : Math.floor(least * 5) / 5;
  }

  levels() {
    const bottom = this.bottom();
    const step = bottom < -3 ? 1 : bottom < -1 ? 0.5 : 0.25;
    const found = [];
    for (let level = 1; level >= bottom - 1e-9; level -= step) found.unshift(level);
    return found;
  }

  ticks(splits) {
    const day = 86400;
    const wide = splits.length > 1 && splits[1] - splits[0] >= day / 2;
    let before = "";
    return splits.map((at) => {
      const date = clock(at, { day: "numeric", month: "short" });
      const time = clock(at, { hour: "2-digit", minute: "2-digit" });
      const first = date !== before;
      before = date;
      return wide ? date : first && time === "00:00" ? date : time;
    });
  }

  /* --- what is drawn around the lines */

  bands(chart) {
    const { ctx, bbox } = chart;
    const ratio = window.devicePixelRatio || 1;
    const marks = [...this.data.bands].sort((a, b) => MARKS[a.kind] - MARKS[b.kind]);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - 10 * ratio, bbox.width, bbox.height + 10 * ratio);
    ctx.clip();
    for (const mark of marks) {
      const begin = chart.valToPos(mark.from, "x", true);
      const end = mark.to == null ? bbox.left + bbox.width : chart.valToPos(mark.to, "x", true);
      const left = Math.max(begin, bbox.left);
      const width = Math.max(Math.min(end, bbox.left + bbox.width) - left, 2 * ratio);
      ctx.fillStyle = this.colour(`--mark-${mark.label === "ticket" ? "ticket" : mark.kind}`);
      ctx.globalAlpha = 0.1;
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.globalAlpha = 1;
      if (mark.kind === "exclusion") this.hatch(ctx, left, bbox.top, width, bbox.height, ratio);
      // A lane of its own above the plot for each kind: told apart by place, not by colour alone.
      const lane = MARKS[mark.kind];
      ctx.fillRect(left, bbox.top - (10 - lane * 2.5) * ratio, width, 2 * ratio);
    }
    ctx.restore();
  }

  hatch(ctx, left, top, width, height, ratio) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.strokeStyle = this.colour("--mark-exclusion");
    ctx.globalAlpha = 0.35;
    ctx.lineWidth = ratio;
    ctx.beginPath();
    for (let x = left - height; x < left + width; x += 8 * ratio) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x + height, top);
    }
    ctx.stroke();
    ctx.restore();
  }

  limits(chart) {
    const { ctx, bbox } = chart;
    const ratio = window.devicePixelRatio || 1;
    const even = this.kind === "burn" ? [{ value: 1, name: "", severity: "even" }] : [{ value: 0, name: "", severity: "even" }];
    ctx.save();
    ctx.font = `600 ${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    for (const limit of [...even, ...this.data.limits]) {
      const y = Math.round(chart.valToPos(limit.value, "y", true));
      if (y < bbox.top || y > bbox.top + bbox.height + 1) continue;
      ctx.strokeStyle = ctx.fillStyle = this.colour(`--limit-${limit.severity}`);
      ctx.lineWidth = (limit.severity === "page" ? 1.75 : 1.25) * ratio;
      ctx.setLineDash(limit.severity === "page" ? [] : [5 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      if (limit.name) ctx.fillText(limit.name, bbox.left + 6 * ratio, y - 2 * ratio);
    }
    ctx.restore();
  }

  /* --- the key: which windows are shown, and what each says where one points */

  showKey() {
    const lines = this.kind === "burn" ? this.data.lines : [];
    this.key.replaceChildren(
      ...lines.map((line) => {
        const style = this.style(line.name);
        const button = document.createElement("button");
        button.type = "button";
        button.className = `plot__line plot__line--${style + 1}`;
        button.setAttribute("aria-pressed", String(!this.hidden.has(line.name)));
        const sample = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        sample.setAttribute("viewBox", "0 0 26 6");
        sample.setAttribute("aria-hidden", "true");
        path.setAttribute("d", "M1 3H25");
        path.setAttribute("stroke-dasharray", DASHES[style].join(" "));
        sample.append(path);
        const name = document.createElement("span");
        name.textContent = readable(line.name);
        const value = document.createElement("b");
        value.className = "digits";
        button.append(sample, name, value);
        button.addEventListener("click", () => this.toggle(line.name, button));
        return button;
      }),
    );
    const at = document.createElement("span");
    at.className = "plot__at small digits";
    this.key.append(at);
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

  readout(chart) {
    if (!chart?.data) return;
    const { times, lines } = this.data;
    const at = chart.cursor.idx ?? times.length - 1;
    const pointed = chart.cursor.idx != null && chart.cursor.left >= 0;
    this.key.querySelectorAll("b").forEach((value, place) => {
      value.textContent = this.tell(lines[place].values[at]);
    });
    const label = this.key.querySelector(".plot__at");
    if (!label) return;
    const left = this.kind === "budget" ? [`${this.tell(lines[0].values[at])} left`] : [];
    const marks = pointed ? this.marksAt(times[at]).map((mark) => mark.name) : [];
    label.textContent = [pointed ? moment(times[at]) : "Now", ...left, ...marks].join(" · ");
  }

  marksAt(seconds) {
    return this.data.bands.filter((mark) => mark.from <= seconds && (mark.to == null || mark.to >= seconds));
  }

  /* --- zooming */

  select(chart) {
    const { left, width } = chart.select;
    if (width < 8) return;
    const from = chart.posToVal(left, "x");
    const to = chart.posToVal(left + width, "x");
    chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.zoom(from, to);
  }

  zoom(from, to) {
    const lack = Math.max(0, LEAST_SECONDS - (to - from)) / 2;
    const wanted = [Math.floor(from - lack), Math.ceil(to + lack)];
    if (this.kind === "burn") {
      this.refresh(wanted).then(() => this.say(`From ${moment(wanted[0])} to ${moment(wanted[1])}`));
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
    const left = this.chart.valToPos(times[place], "x");
    this.chart.setCursor({ left, top: this.chart.over.clientHeight / 2 });
    const told = this.shown().map((line) =>
      this.kind === "burn" ? `${readable(line.name)} ${this.tell(line.values[place])}` : `${this.tell(line.values[place])} left`,
    );
    const marks = this.marksAt(times[place]).map((mark) => `${mark.kind} ${mark.name}`);
    this.say([moment(times[place]), ...told, ...marks].join(", "));
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

/* --- all of the page */

const plots = [];

async function begin() {
  if (!window.uPlot) return;
  const all = [...document.querySelectorAll("[data-plot]")].map((section) => new Plot(section));
  await Promise.all(all.map((plot) => plot.begin()));
  plots.push(...all.filter((plot) => plot.chart));
  // Without it an address that names a part of the page would show another: plots move it down.
  const [part] = location.hash.slice(1).split("=");
  if (part) document.getElementById(part)?.scrollIntoView({ behavior: reduced.matches ? "auto" : "instant" });
}

setInterval(() => {
  if (document.hidden) return;
  for (const plot of plots) if (!plot.zoomed && plot.isOld()) plot.refresh(null, true);
}, REFRESH_MS);

// Colours are those of the theme, which a canvas does not follow by itself.
function redraw() {
  for (const plot of plots) plot.draw();
}
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
for (const media of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(media).addEventListener("change", redraw);

begin();
