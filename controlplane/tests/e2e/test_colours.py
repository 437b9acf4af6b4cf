"""Contrast of all text for four kinds of color vision.

Colors are converted by the matrices of Machado, Oliveira and Fernandes (2009) for a complete
deficiency, in linear RGB; the last kind sees luminance alone.
"""

import pytest

from controlplane.tests.e2e import pages

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
EYES = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "achromatopsia": [[0.2126, 0.7152, 0.0722]] * 3,
}
MIN_CONTRAST, MIN_LARGE_CONTRAST = 4.5, 3.0  # WCAG 2.2, 1.4.3
# The words whose contrast with the ground they stand on is too low to one of these eyes.
FAINT = """([eyes, least, leastOfLarge]) => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const brush = canvas.getContext("2d", {willReadFrequently: true});
  const bytes = new Map();
  const read = text => {
    if (!bytes.has(text)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = text;
      brush.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
      bytes.set(text, [r, g, b, a / 255]);
    }
    return bytes.get(text);
  };
  // One colour upon another, each with its share of covering.
  const over = ([r, g, b, a], [under_r, under_g, under_b, beneath]) => {
    const left = beneath * (1 - a), all = a + left || 1;
    const mix = (part, under) => (part * a + under * left) / all;
    return [mix(r, under_r), mix(g, under_g), mix(b, under_b), a + left];
  };
  // A word and the ground under it as they are seen, once for each colour of a painted gradient.
  const pairs = (one, ink) => {
    let both = [[ink, [0, 0, 0, 0]]];
    for (let at = one; at; at = at.parentElement) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(at);
      const painted = (backgroundImage.match(/(rgba?|color)\\([^)]*\\)/g) ?? []).map(read);
      const plain = read(backgroundColor);
      const layers = painted.map(colour => over(colour, plain));
      if (!painted.length || plain[3]) layers.push(plain);
      const faded = ([r, g, b, a]) => [r, g, b, a * opacity];
      both = both.flatMap(pair => layers.map(layer => pair.map(part => faded(over(part, layer)))));
    }
    return both.map(pair => pair.map(part => over(part, [255, 255, 255, 1])));
  };
  const linear = part => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = (colour, eye) => {
    const light = colour.slice(0, 3).map(linear);
    const seen = eye.map(row => row.reduce((sum, factor, at) => sum + factor * light[at], 0));
    const [r, g, b] = seen.map(part => Math.min(1, Math.max(0, part)));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  // What is written in an element, and in which colour: text, a drawing's, a field's, or its hint.
  const written = one => {
    const style = getComputedStyle(one);
    if (one instanceof HTMLInputElement || one instanceof HTMLTextAreaElement) {
      if (one.value) return style.color;
      return one.placeholder ? getComputedStyle(one, "::placeholder").color : "";
    }
    if (![...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())) return "";
    return one instanceof SVGElement ? style.fill : style.color;
  };
  const faint = new Set();
  let words = 0;
  for (const one of document.querySelectorAll("body *")) {
    const ink = written(one);
    const isShown = ink && one.checkVisibility({visibilityProperty: true, opacityProperty: true});
    if (!isShown || one.closest(":disabled, [aria-disabled='true'], .visually-hidden")) continue;
    words += 1;
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const enough = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? leastOfLarge : least;
    for (const [word, ground] of pairs(one, read(ink))) {
      for (const [name, eye] of Object.entries(eyes)) {
        const both = [luminance(word, eye), luminance(ground, eye)].sort((a, b) => a - b);
        const contrast = (both[1] + 0.05) / (both[0] + 0.05);
        if (contrast < enough) {
          faint.add(`${name} ${contrast.toFixed(2)} ${one.tagName}.${one.getAttribute("class")}`);
        }
      }
    }
  }
  return {words, faint: [...faint].sort()};
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_is_legible_to_whoever_sees_fewer_colours(rounds, night, scheme):
    desk = rounds.open_desk(night, color_scheme=scheme, reduced_motion="reduce")
    faint = {}
    for path in pages.MAIN:
        page = desk.open(path)
        found = page.evaluate(FAINT, [EYES, MIN_CONTRAST, MIN_LARGE_CONTRAST])
        assert found["words"] > 10, path
        if found["faint"]:
            faint[path] = found["faint"]

    assert not faint, faint
