// The key of a plot: which windows are shown, and what each says.

import { readable } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

export function button(line, look, pressed, press) {
  const found = document.createElement("button");
  found.type = "button";
  found.className = `plot__line plot__line--${look.number}`;
  found.setAttribute("aria-pressed", String(pressed));
  const name = document.createElement("span");
  name.textContent = readable(line.name);
  const value = document.createElement("b");
  value.className = "digits";
  found.append(sample(look.dash), name, value);
  found.addEventListener("click", () => press(found));
  return found;
}

function sample(dash) {
  const found = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  found.setAttribute("viewBox", "0 0 26 6");
  found.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M1 3H25");
  path.setAttribute("stroke-dasharray", dash.join(" "));
  found.append(path);
  return found;
}

export function place() {
  const found = document.createElement("span");
  found.className = "plot__at small digits";
  return found;
}
