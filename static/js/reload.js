// Reloads an error page once the console responds again. Checks every ten seconds in the background,
// because a reload of the error page itself would interrupt screen readers.

const INTERVAL_MS = 10_000;

async function reloadIfReachable() {
  try {
    const response = await fetch(location.href, { headers: { "Switchgear-Background": "1" } });
    if (response.status < 500) location.replace(location.href);
  } catch {
    // No response at all; try again later.
  }
}

setInterval(reloadIfReachable, INTERVAL_MS);
