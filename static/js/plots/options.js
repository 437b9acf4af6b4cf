// Options of a plot, for uPlot.

import { drawAnnotations, drawLimits, labelsHeight } from "./annotations.js";
import { lowestLevel, levelTicks, timeLabels, rateTicks } from "./scales.js";
import { formatRate, formatShare, toZone } from "./formatting.js";

/** @type {number[][]} */
export const DASHES = [[], [8, 4], [2, 3], [9, 3, 2, 3], [14, 3], [4, 7]];
/** @type {string[]} */
export const LINE_TOKENS = ["--accent", "--flow", "--ink-3", "--ramp", "--control", "--ink"];
export const STYLES = DASHES.length;
const AXIS_WIDTH = 54;
const MARGIN = 24; // half a label of the time axis fits

/** @param {import("./plot.js").Plot} plot */
export function plotOptions(plot) {
  /** @param {string} name */
  const color = (name) => plot.color(name);
  const ink = plot.color("--ink-3");
  const grid = { stroke: plot.color("--line"), width: 1 };
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const isBurn = plot.kind === "burn";
  const axis = { stroke: ink, font, grid, ticks: { show: false } };
  const visible = plot.visibleRange();
  const { width, height } = plot.size();
  const { times, bands } = plot.data;
  const labels = labelsHeight(bands, visible ?? [times[0], times[times.length - 1]], width - AXIS_WIDTH - MARGIN);
  return {
    width,
    height,
    ms: 1e-3,
    tzDate: toZone,
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, setScale: false, dist: 8 },
      points: { size: 8, width: 2 },
      focus: { prox: -1 },
      bind: { dblclick: () => () => plot.resetZoom() },
    },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    padding: [14 + labels, MARGIN, 0, 4],
    scales: {
      x: { time: true, ...(visible ? { min: visible[0], max: visible[1] } : {}) },
      y: isBurn ? { distr: 4, asinh: 1, range: () => [0, plot.maxRate()] } : { range: () => [lowestLevel(plot.minLevel()), 1] },
    },
    axes: [
      { ...axis, space: 76, values: (/** @type {any} */ _, /** @type {number[]} */ splits) => timeLabels(splits), size: 30 },
      {
        ...axis,
        size: AXIS_WIDTH,
        splits: isBurn ? () => rateTicks(plot.maxRate()) : () => levelTicks(plot.minLevel()),
        values: (/** @type {any} */ _, /** @type {number[]} */ splits) =>
          splits.map((one) => (isBurn ? (one ? formatRate(one) : "0") : formatShare(one))),
        filter: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits, // else uPlot drops every other tick of a logarithmic scale
      },
    ],
    series: [{}, ...plot.data.lines.map((line) => seriesOptions(plot, line))],
    hooks: {
      drawClear: [(/** @type {any} */ chart) => drawAnnotations(chart, bands, color)],
      draw: [(/** @type {any} */ chart) => drawLimits(chart, isBurn ? 1 : 0, plot.data.limits, color)],
      setCursor: [(/** @type {any} */ chart) => plot.updateLegend(chart)],
      setSelect: [(/** @type {any} */ chart) => plot.zoomToSelection(chart)],
    },
  };
}

/** @param {any} chart @param {number} series @returns {number[]} Indexes of known points without known neighbors. */
function singlePoints(chart, series) {
  /** @type {(number | null)[]} */
  const values = chart.data[series];
  const known = values.flatMap((value, index) => (value == null ? [] : [index]));
  return known.filter((index) => values[index - 1] == null && values[index + 1] == null);
}

/** @param {import("./plot.js").Plot} plot @param {PlotLine} line */
function seriesOptions(plot, line) {
  const style = plot.lineStyle(line.name);
  const budget = plot.kind === "budget";
  return {
    label: line.name,
    show: !plot.hidden.has(line.name),
    stroke: plot.color(LINE_TOKENS[style]),
    fill: budget ? plot.color("--accent-soft") : undefined,
    fillTo: budget ? (/** @type {any} */ chart) => chart.scales.y.min : undefined,
    width: style < 2 ? 2 : 1.25,
    dash: budget ? [] : DASHES[style],
    paths: budget ? window.uPlot.paths.stepped({ align: 1 }) : undefined,
    // A point without a known neighbor is no line, so it is drawn as a dot.
    points: { show: true, size: 6, fill: plot.color(LINE_TOKENS[style]), filter: singlePoints },
    spanGaps: false,
  };
}
