// The dependency map by keyboard: arrows go from box to box, Enter opens one, Escape the whole map.
// The boxes are plain links: everything else works without this.

const ground = document.querySelector("[data-map]");

function boxes() {
  return [...document.querySelectorAll("[data-node]")];
}

function middle(box) {
  const place = box.getBoundingClientRect();
  return { x: place.x + place.width / 2, y: place.y + place.height / 2 };
}

// Straight ahead counts, and how far aside counts double: what lies in the direction, nearest first.
const AHEAD = {
  ArrowLeft: (from, to) => [from.x - to.x, from.y - to.y],
  ArrowRight: (from, to) => [to.x - from.x, from.y - to.y],
  ArrowUp: (from, to) => [from.y - to.y, from.x - to.x],
  ArrowDown: (from, to) => [to.y - from.y, from.x - to.x],
};

function next(from, key) {
  const here = middle(from);
  let best = null;
  let shortest = Infinity;
  for (const box of boxes()) {
    if (box === from) continue;
    const [ahead, aside] = AHEAD[key](here, middle(box));
    const distance = ahead + 2 * Math.abs(aside);
    if (ahead > 8 && distance < shortest) [best, shortest] = [box, distance];
  }
  return best;
}

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
  const on = event.target.closest?.("[data-node]");
  if (event.key === "Escape" && on) location.assign(document.querySelector("[data-map]").dataset.whole);
  if (!on || !AHEAD[event.key]) return;
  event.preventDefault();
  next(on, event.key)?.focus();
});

// A wide map begins where the service in focus is, once: not on every refresh.
const focus = document.querySelector("[data-node][aria-current]");
if (focus && ground && ground.scrollWidth > ground.clientWidth) {
  const place = focus.getBoundingClientRect();
  const frame = ground.getBoundingClientRect();
  ground.scrollLeft += place.x + place.width / 2 - frame.x - frame.width / 2;
}
