// Options of a plot, for uPlot.

import { drawBands, drawLimits } from "./annotations.js";
import { lowestLevel, levelTicks, timeLabels, rateTicks } from "./scales.js";
import { formatRate, formatShare, toZone } from "./formatting.js";

export const DASHES = [[], [8, 4], [2, 3], [9, 3, 2, 3], [14, 3], [4, 7]];
export const STYLES = DASHES.length;

export function plotOptions(plot) {
  const colour = (name) => plot.colour(name);
  const ink = plot.colour("--ink-3");
  const grid = { stroke: plot.colour("--plot-grid"), width: 1 };
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const isBurn = plot.kind === "burn";
  const axis = { stroke: ink, font, grid, ticks: { show: false } };
  const visible = plot.seen();
  return {
    ...plot.size(),
    ms: 1e-3,
    tzDate: toZone,
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, setScale: false, dist: 8 },
      points: { size: 8, width: 2 },
      focus: { prox: -1 },
      bind: { dblclick: () => () => plot.whole() },
    },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    padding: [14, 12, 0, 4],
    scales: {
      x: { time: true, ...(visible ? { min: visible[0], max: visible[1] } : {}) },
      y: isBurn ? { distr: 4, asinh: 1, range: () => [0, plot.top()] } : { range: () => [lowestLevel(plot.least()), 1] },
    },
    axes: [
      { ...axis, space: 76, values: (_, splits) => timeLabels(splits), size: 30 },
      {
        ...axis,
        size: 54,
        splits: isBurn ? () => rateTicks(plot.top()) : () => levelTicks(plot.least()),
        values: (_, splits) => splits.map((one) => (isBurn ? (one ? formatRate(one) : "0") : formatShare(one))),
        filter: (_, splits) => splits, // else uPlot drops every other tick of a logarithmic scale
      },
    ],
    series: [{}, ...plot.data.lines.map((line) => seriesOptions(plot, line))],
    hooks: {
      drawClear: [(chart) => drawBands(chart, plot.data.bands, colour)],
      draw: [(chart) => drawLimits(chart, isBurn ? 1 : 0, plot.data.limits, colour)],
      setCursor: [(chart) => plot.readout(chart)],
      setSelect: [(chart) => plot.select(chart)],
    },
  };
}

function seriesOptions(plot, line) {
  const style = plot.style(line.name);
  const budget = plot.kind === "budget";
  return {
    label: line.name,
    show: !plot.hidden.has(line.name),
    stroke: plot.colour(`--plot-${style + 1}`),
    fill: budget ? plot.colour("--plot-fill") : undefined,
    fillTo: budget ? (chart) => chart.scales.y.min : undefined,
    width: style < 2 ? 2 : 1.25,
    dash: budget ? [] : DASHES[style],
    paths: budget ? window.uPlot.paths.stepped({ align: 1 }) : undefined,
    points: { show: false },
    spanGaps: false,
  };
}
