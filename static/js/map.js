// Keyboard navigation of the dependency map: arrows move between boxes, Enter opens one, Escape shows
// the whole map. The boxes are links, so the map works without this module.

const canvas = document.querySelector("[data-map]");

function boxes() {
  return [...document.querySelectorAll("[data-node]")];
}

/** @typedef {{ x: number, y: number }} Point */

/** @param {HTMLElement} box @returns {Point} */
function centerOf(box) {
  const place = box.getBoundingClientRect();
  return { x: place.x + place.width / 2, y: place.y + place.height / 2 };
}

// Distances from one box to another: along the direction of the key, and sideways.
/** @type {Record<string, (from: Point, to: Point) => [number, number]>} */
const DIRECTIONS = {
  ArrowLeft: (from, to) => [from.x - to.x, from.y - to.y],
  ArrowRight: (from, to) => [to.x - from.x, from.y - to.y],
  ArrowUp: (from, to) => [from.y - to.y, from.x - to.x],
  ArrowDown: (from, to) => [to.y - from.y, from.x - to.x],
};

/** @param {HTMLElement} from @param {string} key */
function nearestBox(from, key) {
  const here = centerOf(from);
  /** @type {HTMLElement | null} */
  let best = null;
  let shortest = Infinity;
  for (const box of boxes()) {
    if (box === from) continue;
    const [ahead, aside] = DIRECTIONS[key](here, centerOf(box));
    const distance = ahead + 2 * Math.abs(aside);
    if (ahead > 8 && distance < shortest) [best, shortest] = [box, distance];
  }
  return best;
}

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
  const focusedBox = event.target.closest?.("[data-node]");
  if (event.key === "Escape" && focusedBox) location.assign(document.querySelector("[data-map]").dataset.whole);
  if (!focusedBox || !DIRECTIONS[event.key]) return;
  event.preventDefault();
  nearestBox(focusedBox, event.key)?.focus();
});

// Scroll a wide map to the selected service, once, not on every refresh.
const currentNode = document.querySelector("[data-node][aria-current]");
if (currentNode && canvas && canvas.scrollWidth > canvas.clientWidth) {
  const place = currentNode.getBoundingClientRect();
  const frame = canvas.getBoundingClientRect();
  canvas.scrollLeft += place.x + place.width / 2 - frame.x - frame.width / 2;
}
