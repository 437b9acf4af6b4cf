// Annotations of a plot: events as bands, and the thresholds of rules as lines.

const LANES = { exclusion: 0, episode: 1, ramp: 2, alert: 3 }; // drawn in this order

export function drawBands(chart, found, colour) {
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  const marks = [...found].sort((a, b) => LANES[a.kind] - LANES[b.kind]);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - 10 * ratio, bbox.width, bbox.height + 10 * ratio);
  ctx.clip();
  for (const mark of marks) {
    const begin = chart.valToPos(mark.from, "x", true);
    const end = mark.to == null ? bbox.left + bbox.width : chart.valToPos(mark.to, "x", true);
    const left = Math.max(begin, bbox.left);
    const width = Math.max(Math.min(end, bbox.left + bbox.width) - left, 2 * ratio);
    ctx.fillStyle = colour(`--mark-${mark.label === "ticket" ? "ticket" : mark.kind}`);
    ctx.globalAlpha = 0.1;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.globalAlpha = 1;
    if (mark.kind === "exclusion") drawHatching(ctx, colour, left, bbox.top, width, bbox.height, ratio);
    // Each kind has its own lane above the plot, so that color is not the only difference.
    const lane = LANES[mark.kind];
    ctx.fillRect(left, bbox.top - (10 - lane * 2.5) * ratio, width, 2 * ratio);
  }
  ctx.restore();
}

function drawHatching(ctx, colour, left, top, width, height, ratio) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.strokeStyle = colour("--mark-exclusion");
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

export function drawLimits(chart, even, named, colour) {
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.font = `600 ${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  for (const limit of [{ value: even, name: "", severity: "even" }, ...named]) {
    const y = Math.round(chart.valToPos(limit.value, "y", true));
    if (y < bbox.top || y > bbox.top + bbox.height + 1) continue;
    ctx.strokeStyle = ctx.fillStyle = colour(`--limit-${limit.severity}`);
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
