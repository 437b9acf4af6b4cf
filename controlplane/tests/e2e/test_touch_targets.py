"""Buttons and links of the main pages are large enough for a thumb.

The rule: whatever is drawn as a control is hit 44 by 44 pixels around its center. A link that is
drawn as text, such as a name in a row, needs the 24 pixels of WCAG 2.5.8: a circle of 24 pixels
around its center touches no other target. Links within a sentence are exempt, as there.
"""

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PATHS = (
    "/",
    "/attention/",
    "/breakers/",
    "/breakers/map/",
    "/breakers/fallbacks/",
    "/breakers/infrastructure/",
    "/breakers/core/oracle/",
    "/breakers/core/oracle/override/",
    "/dead-letters/",
    "/alerts/",
    "/slos/",
    "/slos/core-availability/",
    "/ramps/",
)
# Points are tested on the page, since a target may be larger than its box, or lie below another.
TOO_SMALL = """() => {
  const CONTROLS = "button, select, textarea, summary, input, [role=button], .button, .chip,"
    + " nav a, .tabs a, .segments a, .crumb";
  const isVisible = one => one.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && one.getBoundingClientRect().width > 2 && !one.closest("[inert], .visually-hidden, svg");
  const labelOf = one => one.matches("input") && one.labels?.length ? one.labels[0] : one;
  const targets = [...document.querySelectorAll("a[href], button, select, textarea, summary,"
    + " input:not([type=hidden]), [role=button]")].filter(one => isVisible(labelOf(one)));
  const isInSentence = one => getComputedStyle(one).display === "inline"
    && [...one.parentElement.childNodes].some(node => node.nodeType === 3
      && /[a-z]{2}/i.test(node.data));
  const isHit = (one, x, y) => {
    const found = document.elementFromPoint(x, y);
    return found && (one.contains(found) || labelOf(one).contains(found));
  };
  const keepsDistance = (one, {x, y}) => targets.every(other => {
    if (other === one || other.contains(one) || one.contains(other)) return true;
    const box = other.getBoundingClientRect();
    const aside = Math.max(box.left - x, 0, x - box.right);
    const above = Math.max(box.top - y, 0, y - box.bottom);
    return Math.hypot(aside, above) >= 12;
  });
  const small = [];
  for (const one of targets) {
    if (isInSentence(one)) continue;
    const area = labelOf(one);
    area.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
    const box = area.getBoundingClientRect();
    const center = {x: box.x + box.width / 2, y: box.y + box.height / 2};
    const reach = [[0, -21], [0, 21], [-21, 0], [21, 0]];
    const fits = one.matches(CONTROLS)
      ? reach.every(([x, y]) => isHit(one, center.x + x, center.y + y))
      : keepsDistance(one, center);
    const name = (area.innerText || one.ariaLabel || one.name || "").trim().slice(0, 30);
    const size = `${Math.round(box.width)}×${Math.round(box.height)}`;
    if (!fits) small.push(`${one.tagName}#${one.id}.${one.className} "${name}" ${size}`);
  }
  return small;
}"""


def test_controls_are_large_enough_for_a_thumb(rounds, night):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = (desk := rounds.open_desk(night, **phone)).page
    small = {}
    for path in PATHS:
        page.goto(f"{desk.url}{path}")
        assert page.evaluate("matchMedia('(pointer: coarse)').matches")
        if found := page.evaluate(TOO_SMALL):
            small[path] = found

    assert not small, "\n".join(f"{path}: {one}" for path, all_ in small.items() for one in all_)
