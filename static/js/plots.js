// Plots of burn rates and budgets, by uPlot. The same data is in tables below them, which open if the
// library is missing. Zooming in loads finer data from the server.

import { Plot, REFRESH_MS } from "./plots/plot.js";

/** @type {Plot[]} */
const plots = [];

async function initialize() {
  const all = [...document.querySelectorAll("[data-plot]")].map((section) => new Plot(section));
  if (!window.uPlot) {
    for (const plot of all) plot.openTable();
    return;
  }
  await Promise.all(all.map((plot) => plot.load()));
  plots.push(...all);
  // A fragment with a range (`#burn=…`) is no id, so the browser does not scroll to it.
  const [part] = location.hash.slice(1).split("=");
  if (part) document.getElementById(part)?.scrollIntoView({ behavior: "instant" });
}

setInterval(() => {
  if (document.hidden) return;
  for (const plot of plots) if (!plot.zoomed && plot.isOld()) plot.refresh(null, true);
}, REFRESH_MS);

// A canvas does not follow changes of theme and time zone by itself.
function redraw() {
  for (const plot of plots) if (plot.data) plot.draw();
}
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme", "data-times"] });
for (const media of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(media).addEventListener("change", redraw);

// Show current values after each refresh of the live part.
document.addEventListener("htmx:afterSettle", () => {
  for (const plot of plots) if (plot.data && plot.chart.cursor.left < 0) plot.updateLegend(plot.chart);
});

initialize();
