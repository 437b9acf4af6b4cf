// Annotations of a plot: events with labels above it, and the thresholds of rules as lines.

const ROW_HEIGHT = 17;
const MAX_ROWS = 4;
const MAX_LABEL = 170; // pixels
const GAP = 8;
/** @type {Record<string, string>} */
const WORDS = { exclusion: "", episode: "Engaged ", ramp: "Ramp ", alert: "" };
/** @type {Record<string, string>} */
const MARK_TOKENS = { exclusion: "--control", episode: "--ink", ramp: "--ramp", alert: "--stop", ticket: "--warn" };
/** @type {Record<string, string>} */
const LIMIT_TOKENS = { page: "--stop", ticket: "--warn", even: "--control" };

export const labelFont = () => `11px ${getComputedStyle(document.body).fontFamily}`;

// Return labels that don't overlap, as {mark, row, left, right, text}, and the number of rows.
// `place` converts seconds to pixels from 0 to `width`; `measure` returns the width of a text. Marks
// without a free row have no label; the list below the plot names them all.
/** @param {PlotBand[]} marks @param {(seconds: number) => number} place @param {number} width @param {(text: string) => number} measure */
export function layoutLabels(marks, place, width, measure) {
  /** @type {number[]} */
  const ends = [];
  const labels = [];
  for (const mark of [...marks].sort((a, b) => a.from - b.from)) {
    const begin = Math.min(Math.max(place(mark.from), 0), width);
    const end = mark.to == null ? width : Math.min(Math.max(place(mark.to), begin), width);
    const text = shorten(WORDS[mark.kind] + mark.name, measure);
    const left = Math.max(0, Math.min(begin, width - measure(text)));
    const right = Math.max(end, left + measure(text));
    let row = ends.findIndex((taken) => taken + GAP <= left);
    if (row < 0) row = ends.length;
    if (row >= MAX_ROWS) continue;
    ends[row] = right;
    labels.push({ mark, row, left, begin, end, text });
  }
  return { labels, rows: ends.length };
}

/** @param {string} text @param {(text: string) => number} measure */
function shorten(text, measure) {
  if (measure(text) <= MAX_LABEL) return text;
  let length = text.length - 1;
  while (length > 8 && measure(`${text.slice(0, length)}…`) > MAX_LABEL) length--;
  return `${text.slice(0, length)}…`;
}

// Height of the labels above a plot of this width that shows the times from `from` to `to`.
/** @param {PlotBand[]} marks @param {number[]} range @param {number} width */
export function labelsHeight(marks, [from, to], width) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = labelFont();
  /** @param {number} seconds */
  const place = (seconds) => ((seconds - from) / (to - from)) * width;
  return layoutLabels(marks, place, width, (text) => context.measureText(text).width).rows * ROW_HEIGHT;
}

/** @param {any} chart @param {PlotBand[]} marks @param {(name: string) => string} color */
export function drawAnnotations(chart, marks, color) {
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  /** @param {number} seconds @returns {number} */
  const place = (seconds) => chart.valToPos(seconds, "x");
  ctx.save();
  ctx.font = labelFont();
  const { labels, rows } = layoutLabels(marks, place, bbox.width / ratio, (text) => ctx.measureText(text).width);
  ctx.scale(ratio, ratio);
  ctx.translate(bbox.left / ratio, bbox.top / ratio);
  const [width, height] = [bbox.width / ratio, bbox.height / ratio];
  for (const mark of marks) drawSpan(ctx, mark, place, width, height, color);
  ctx.textBaseline = "bottom";
  for (const label of labels) {
    const bottom = (label.row - rows + 1) * ROW_HEIGHT - 3;
    ctx.fillStyle = markColor(label.mark, color);
    ctx.fillRect(label.begin, bottom, Math.max(label.end - label.begin, 2), 2);
    ctx.fillStyle = color("--ink");
    ctx.fillText(label.text, label.left, bottom);
  }
  ctx.restore();
}

// The begin and end of an event are lines; only time that is excluded covers the plot.
/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {PlotBand} mark
 * @param {(seconds: number) => number} place
 * @param {number} width
 * @param {number} height
 * @param {(name: string) => string} color
 */
function drawSpan(ctx, mark, place, width, height, color) {
  const begin = place(mark.from);
  const end = mark.to == null ? width : place(mark.to);
  ctx.strokeStyle = markColor(mark, color);
  if (mark.kind === "exclusion") drawHatching(ctx, Math.max(begin, 0), Math.min(end, width), height);
  ctx.setLineDash([2, 3]);
  for (const x of mark.to == null ? [begin] : [begin, end]) {
    if (x < 0 || x > width) continue;
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, height);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

/** @param {PlotBand} mark @param {(name: string) => string} color */
const markColor = (mark, color) => color(MARK_TOKENS[mark.label === "ticket" ? "ticket" : mark.kind]);

/** @param {CanvasRenderingContext2D} ctx @param {number} left @param {number} right @param {number} height */
function drawHatching(ctx, left, right, height) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, 0, right - left, height);
  ctx.clip();
  ctx.globalAlpha = 0.35;
  ctx.beginPath();
  for (let x = left - height; x < right; x += 8) {
    ctx.moveTo(x, height);
    ctx.lineTo(x + height, 0);
  }
  ctx.stroke();
  ctx.restore();
}

/** @param {any} chart @param {number} even @param {PlotLimit[]} named @param {(name: string) => string} color */
export function drawLimits(chart, even, named, color) {
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.font = `600 ${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  for (const limit of [{ value: even, name: "", severity: "even" }, ...named]) {
    const y = Math.round(chart.valToPos(limit.value, "y", true));
    if (y < bbox.top || y > bbox.top + bbox.height + 1) continue;
    ctx.strokeStyle = ctx.fillStyle = color(LIMIT_TOKENS[limit.severity]);
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
