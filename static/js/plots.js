// Plots of burn rates and budgets, by uPlot. The same data is in tables beside them, which stay open
// if the library or this script is missing. Zooming in loads finer data from the server.

import { Plot, REFRESH_MS } from "./plots/plot.js";

const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
const plots = [];

async function initialize() {
  if (!window.uPlot) return;
  const all = [...document.querySelectorAll("[data-plot]")].map((section) => new Plot(section));
  await Promise.all(all.map((plot) => plot.begin()));
  plots.push(...all);
  // Plots move the content down, so scroll to the URL's fragment again.
  const [part] = location.hash.slice(1).split("=");
  if (part) document.getElementById(part)?.scrollIntoView({ behavior: reduced.matches ? "auto" : "instant" });
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
  for (const plot of plots) if (plot.data && plot.chart.cursor.left < 0) plot.readout(plot.chart);
});

initialize();
