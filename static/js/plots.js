// Plots of burn rates and budgets, by uPlot. What they show stands in tables beside them, which stay
// open where the library or this script is missing. Figures come from the server, finer ones when
// somebody zooms in.

import { Plot, REFRESH_MS } from "./plots/plot.js";

const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
const plots = [];

async function begin() {
  if (!window.uPlot) return;
  const all = [...document.querySelectorAll("[data-plot]")].map((section) => new Plot(section));
  await Promise.all(all.map((plot) => plot.begin()));
  plots.push(...all);
  // Without it an address that names a part of the page would show another: plots move it down.
  const [part] = location.hash.slice(1).split("=");
  if (part) document.getElementById(part)?.scrollIntoView({ behavior: reduced.matches ? "auto" : "instant" });
}

setInterval(() => {
  if (document.hidden) return;
  for (const plot of plots) if (!plot.zoomed && plot.isOld()) plot.refresh(null, true);
}, REFRESH_MS);

// Colours are those of the theme and times of a zone, which a canvas does not follow by itself.
function redraw() {
  for (const plot of plots) if (plot.data) plot.draw();
}
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme", "data-times"] });
for (const media of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(media).addEventListener("change", redraw);

// What was judged since: nobody else tells a plot of it.
document.addEventListener("htmx:afterSettle", () => {
  for (const plot of plots) if (plot.data && plot.chart.cursor.left < 0) plot.readout(plot.chart);
});

begin();
