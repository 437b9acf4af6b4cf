// Legend of a plot: toggles of the windows, with their values.

import { formatWindow } from "./formatting.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {PlotLine} line
 * @param {{ token: string, dash: number[] }} look
 * @param {boolean} pressed
 * @param {(button: HTMLButtonElement) => void} press
 */
export function legendButton(line, look, pressed, press) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "plot__line";
  element.setAttribute("aria-pressed", String(pressed));
  const name = document.createElement("span");
  name.textContent = formatWindow(line.name);
  const value = document.createElement("b");
  value.className = "digits";
  element.append(lineSample(look), name, value);
  element.addEventListener("click", () => press(element));
  return element;
}

/** @param {{ token: string, dash: number[] }} look */
function lineSample(look) {
  const found = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  found.setAttribute("viewBox", "0 0 26 6");
  found.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M1 3H25");
  path.setAttribute("stroke", `var(${look.token})`);
  path.setAttribute("stroke-dasharray", look.dash.join(" "));
  found.append(path);
  return found;
}

export function timeLabel() {
  const found = document.createElement("span");
  found.className = "plot__at small digits";
  return found;
}
