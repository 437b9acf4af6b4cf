// A page that could not be shown asks every ten seconds whether it can be now, and is left alone
// until then: whoever reads it, or has it read out, does not begin anew each time.

const EVERY = 10_000; // ms

async function again() {
  try {
    const answer = await fetch(location.href, { headers: { "Switchgear-Background": "1" } });
    if (answer.status < 500) location.replace(location.href);
  } catch {
    // Nobody answers at all: the next time may be better.
  }
}

setInterval(again, EVERY);
