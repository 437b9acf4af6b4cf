"""The dependency map in a browser: keys, states and shares on lines, legend, list on a phone."""

import pytest
from playwright.sync_api import expect

from breakers.models import Service
from breakers.tests.house import dependency, forced, minute, reports
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person

pytestmark = pytest.mark.e2e
MAP = "/breakers/map/"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SLOTS = """() => [...document.querySelectorAll(".node text")].filter(text => {
    const box = text.closest("a").querySelector("rect").getBoundingClientRect();
    const place = text.getBoundingClientRect();
    return place.left < box.left || place.right > box.right - 2;
  }).map(text => text.textContent)"""


@pytest.fixture
def house(transactional_db):
    """Dependencies in each state; `canvas` calls `core`, which calls the others."""
    now = db_now()
    found = {
        callee: dependency(f"core->{callee}", now)
        for callee in ("open", "probing", "failing", "forced", "calm", "silent")
    }
    dependency("canvas->core", now, criticality="high")
    for callee, state in (
        ("open", "open"),
        ("probing", "half_open"),
        ("failing", "closed"),
        ("forced", "closed"),
        ("calm", "closed"),
    ):
        reports(found[callee], now, state)
    minute(found["open"], now, 0, rejected=100)
    minute(found["failing"], now, 0, success=60, failure=20, rejected=20)
    forced(found["forced"], now, "metrics_only")
    return found


def test_arrows_move_between_boxes_enter_shows_the_effect_and_escape_the_whole_map(desks, house):
    page = desks.open_desk(person("viewer")).open(MAP)
    page.locator("#node-canvas").focus()

    page.keyboard.press("ArrowRight")
    expect(page.locator("#node-core")).to_be_focused()
    page.keyboard.press("ArrowRight")
    beyond = page.evaluate("document.activeElement.id")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator(f"#{beyond}")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#node-core")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Affected if core fails")).to_be_visible()
    expect(page.get_by_role("heading", name="Needed by core")).to_be_visible()
    page.locator("#node-core").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Dependency map")).to_be_visible()


@pytest.mark.parametrize(
    ("callee", "state", "share"),
    [
        ("open", "open", "100 %"),
        ("probing", "half_open", None),
        ("failing", "failing", "40 %"),
        ("calm", "closed", None),
        ("silent", "unknown", None),
    ],
)
def test_lines_show_their_state_and_the_share_of_failed_calls(desks, house, callee, state, share):
    page = desks.open_desk(person("viewer")).open(MAP)
    line = page.locator(f"#edge-{house[callee].pk}")

    expect(line).to_have_class(f"edge edge--{state}")
    shares = line.locator(".edge__rate").all_text_contents()
    assert shares == ([share] if share else [])
    assert page.locator(f"#node-{callee}").get_attribute("class") == (
        f"node node--{state} node--is-plain"
    )


def test_forced_line_has_the_icon_of_an_override_and_comes_first_in_the_list(desks, house):
    page = desks.open_desk(person("viewer")).open(MAP)

    mark = page.locator(f"#edge-{house['forced'].pk} .edge__mark use")
    assert "#override" in mark.get_attribute("href")
    rows = page.locator("table tbody tr")
    expect(rows.first).to_contain_text("Metrics only")
    expect(rows.nth(1)).to_contain_text("100 % rejected")


def test_legend_names_each_state_and_the_percentage(desks, house):
    page = desks.open_desk(person("viewer")).open(MAP)

    for text in ("open", "half-open", "closed, failing", "closed", "not reported", "forced"):
        expect(page.locator(".map__key").get_by_text(text, exact=True)).to_be_visible()
    expect(page.locator(".map__key")).to_contain_text("%: failed or rejected in 5 min")


def test_long_names_stay_in_their_boxes(desks, transactional_db):
    now = db_now()
    names = ("recommendation_service", "EventLog worker for warehouses", "W" * 30, "결제" * 12)
    for number, name in enumerate(names):
        Service.objects.create(slug=f"s{number}", name=name, changed_at=now)
        dependency(f"core->s{number}", now)

    page = desks.open_desk(person("viewer")).open(MAP)

    assert page.locator(".node").count() == 5
    assert page.evaluate(SLOTS) == []
    expect(page.locator("#node-s0 title")).to_have_text("recommendation_service")


def test_phone_shows_the_list_alone(desks, house):
    page = desks.open_desk(person("viewer"), **PHONE).open(MAP)

    expect(page.locator(".map")).to_be_hidden()
    expect(page.get_by_role("heading", name="7 dependencies")).to_be_visible()
    expect(page.locator("table tbody tr").first).to_contain_text("forced")
    panels = page.locator("#live > .panel:visible")
    assert panels.count() == 1
