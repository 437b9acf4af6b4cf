// How a plot looks, as its library wants to be told.

import { bands, limits } from "./marks.js";
import { bottom, levels, moments, rates } from "./scales.js";
import { rate, share, wall } from "./words.js";

export const DASHES = [[], [8, 4], [2, 3], [9, 3, 2, 3], [14, 3], [4, 7]];
export const STYLES = DASHES.length;

export function options(plot) {
  const colour = (name) => plot.colour(name);
  const ink = plot.colour("--ink-3");
  const grid = { stroke: plot.colour("--plot-grid"), width: 1 };
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const burns = plot.kind === "burn";
  const axis = { stroke: ink, font, grid, ticks: { show: false } };
  const seen = plot.seen();
  return {
    ...plot.size(),
    ms: 1e-3,
    tzDate: wall,
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
      x: { time: true, ...(seen ? { min: seen[0], max: seen[1] } : {}) },
      y: burns ? { distr: 4, asinh: 1, range: () => [0, plot.top()] } : { range: () => [bottom(plot.least()), 1] },
    },
    axes: [
      { ...axis, space: 76, values: (_, splits) => moments(splits), size: 30 },
      {
        ...axis,
        size: 54,
        splits: burns ? () => rates(plot.top()) : () => levels(plot.least()),
        values: (_, splits) => splits.map((one) => (burns ? (one ? rate(one) : "0") : share(one))),
        filter: (_, splits) => splits, // or every other one of a logarithmic scale is left out
      },
    ],
    series: [{}, ...plot.data.lines.map((line) => series(plot, line))],
    hooks: {
      drawClear: [(chart) => bands(chart, plot.data.bands, colour)],
      draw: [(chart) => limits(chart, burns ? 1 : 0, plot.data.limits, colour)],
      setCursor: [(chart) => plot.readout(chart)],
      setSelect: [(chart) => plot.select(chart)],
    },
  };
}

function series(plot, line) {
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
