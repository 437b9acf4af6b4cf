"""A browser on the board and the page of an SLO.

The board is live; plots are drawn, zoomed and read out, with tables in their place without scripts.
"""

import re
from datetime import timedelta

import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from slo.arithmetic.minutes import last_ended
from slo.models import Slo, SloStatus
from slo.templatetags.slos import LIBRARY

from . import factories
from .month_of_events import Incident, alert, excluded, month, store_statuses

pytestmark = pytest.mark.e2e
ONE = "/slos/core-availability/"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PAGING = [{"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page", "state": "firing"}]
COUNT_ACCENT_PIXELS = """canvas => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(--accent)";
  const accent = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] === 255 && accent.every((one, place) => one === data[at + place])) found++;
  return found;
}"""
needs_library = pytest.mark.skipif(
    finders.find(LIBRARY) is None, reason="the library that draws plots is not installed"
)


def burning() -> Slo:
    """Return an SLO that burned this morning, with an hour excluded."""
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(300, 20, 0.05)], days=4)
    store_statuses([slo], now)
    alert(slo, now - timedelta(minutes=290), 25)
    last = SloStatus.objects.get(slo=slo).minute
    excluded(slo, last - 700, last - 640)
    return slo


def test_board_shows_what_fires_without_a_reload_and_leads_to_its_plots(desks):
    burning()
    page = desks.open_desk(person("operator")).open("/slos/")
    row = page.locator("tr[data-switch='core-availability']")
    expect(row).to_contain_text("OK")

    SloStatus.objects.update(state="firing", rules=PAGING, burn_rates={"1h": 18.2, "5m": 31})
    page.evaluate("document.body.dispatchEvent(new Event('refresh'))")

    expect(row).to_contain_text("Paging")
    expect(page.get_by_role("heading", name="1 firing")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("core-availability is paging")

    row.get_by_role("link", name="core-availability").click()
    expect(page.get_by_role("heading", name="Error budget left")).to_be_visible()
    expect(page.locator(".slo-rules__firing")).to_contain_text("18.2×")


@needs_library
@pytest.mark.smoke
def test_plot_is_drawn_zoomed_by_dragging_and_shown_whole_again(desks):
    burning()
    page = desks.open_desk(person("viewer")).open(ONE)
    area = page.locator("#burn [data-plot-area]")
    expect(area.locator("canvas")).to_be_visible()
    expect(page.locator("#burn details")).not_to_have_attribute("open", "")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    middle = box["y"] + box["height"] / 2

    page.mouse.move(box["x"] + box["width"] * 0.7, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=4)
    with page.expect_response(lambda response: "from=" in response.url):
        page.mouse.up()

    whole = page.locator("#burn").get_by_role("button", name="Whole range")
    expect(whole).to_be_visible()
    expect(page).to_have_url(re.compile(r"#burn=\d+-\d+$"))
    with page.expect_response(lambda response: "from=" in response.url):
        page.reload()
    expect(whole).to_be_visible()
    whole.click()
    expect(whole).to_be_hidden()
    expect(page).to_have_url(re.compile(f"{ONE}$"))


@needs_library
@pytest.mark.parametrize("said", ["burn=12-15", "budget=1-99999999999", "burn=x", "burn=-", "x=%"])
def test_range_made_up_in_the_address_harms_nothing(desks, said):
    burning()
    page = desks.open_desk(person("viewer")).open(f"{ONE}#{said}")

    expect(page.locator("#burn canvas")).to_be_visible()
    expect(page.locator("#budget canvas")).to_be_visible()
    expect(page.locator("#burn [data-plot-legend] button").first).to_be_visible()


@needs_library
def test_plot_is_read_by_keyboard_point_by_point(desks):
    burning()
    page = desks.open_desk(person("viewer")).open(ONE)
    area = page.locator("#burn [data-plot-area]")
    expect(area.locator("canvas")).to_be_visible()

    area.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")

    said = page.locator("#burn [data-plot-status]")
    expect(said).to_contain_text("1 h ")
    before = said.text_content()
    page.keyboard.press("ArrowLeft")
    expect(said).not_to_have_text(before)


@needs_library
def test_window_is_switched_on_and_never_the_last_one_off(desks):
    burning()
    page = desks.open_desk(person("viewer")).open(ONE)
    key = page.locator("[data-plot='burn'] [data-plot-legend]")

    key.get_by_role("button", name="5 min").click()

    expect(key.get_by_role("button", name="5 min")).to_have_attribute("aria-pressed", "true")
    for name in ("5 min", "1 h", "6 h"):
        key.get_by_role("button", name=name).click()
    expect(key.locator("[aria-pressed='true']")).to_have_count(1)


def test_tables_stand_in_for_plots_without_their_library(desks):
    burning()
    desk = desks.open_desk(person("viewer"))
    desk.page.route("**/vendor/uplot/*", lambda route: route.fulfill(status=404))

    page = desk.open(ONE)

    expect(page.get_by_role("columnheader", name="Budget left")).to_be_visible()
    expect(page.locator("#burn canvas")).to_have_count(0)


def test_tables_stand_in_for_plots_without_scripts(desks):
    burning()

    page = desks.open_desk(person("viewer"), java_script_enabled=False).open(ONE)

    expect(page.get_by_role("columnheader", name="Budget left")).to_be_visible()
    expect(page.get_by_role("link", name="7 d")).to_be_visible()


@pytest.mark.parametrize("path", ["/slos/", ONE, f"{ONE}?range=30d"])
def test_phone_page_never_scrolls_sideways(desks, path):
    burning()
    factories.slo("a-rather-long-name-of-an-objective.of-the-canvas-service_in-eu-west")

    page = desks.open_desk(person("operator"), **PHONE).open(path)

    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("part", ["2026", "a=b"])
def test_address_of_a_part_that_is_none_harms_nothing(desks, part):
    """The page fixture fails on every script error."""
    burning()

    page = desks.open_desk(person("viewer")).open(f"{ONE}#{part}")

    expect(page.get_by_role("heading", name="Error budget left")).to_be_visible()
    page.wait_for_load_state("networkidle")


@needs_library
def test_now_is_what_was_judged_last_and_follows_it(desks):
    burning()
    SloStatus.objects.update(burn_rates={"1h": 3.4, "6h": 0.7}, remaining_ratio=0.42)
    page = desks.open_desk(person("viewer")).open(ONE)
    hour = page.locator("#burn [data-plot-legend]").get_by_role("button", name="1 h")
    expect(hour).to_contain_text("3.4×")
    expect(page.locator("#budget [data-plot-legend]")).to_have_text("Now · 42 % left")

    SloStatus.objects.update(burn_rates={"1h": None, "6h": 0.9}, remaining_ratio=None)
    page.evaluate("document.body.dispatchEvent(new Event('refresh'))")

    expect(hour).to_contain_text("unknown")
    expect(page.locator("#budget [data-plot-legend]")).to_have_text("Now · unknown")


@needs_library
def test_single_known_point_is_drawn(desks):
    """Only the last burn rate of the 1 h window is known, and a line needs two."""
    now = db_now()
    slo, last = factories.slo(), last_ended(now)
    factories.counted(slo, [(last - 6, 0, 0), (last, 5, 1000)])
    store_statuses([slo], now)
    page = desks.open_desk(person("viewer")).open(ONE)
    expect(page.locator("#burn canvas")).to_be_visible()

    drawn = page.locator("#burn canvas").evaluate(COUNT_ACCENT_PIXELS)

    assert drawn > 0


@needs_library
def test_budget_of_which_nothing_is_known_is_said_and_not_drawn(desks):
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(90, 80, 0.5)], days=1)
    store_statuses([slo], now)

    page = desks.open_desk(person("viewer")).open(ONE)

    expect(page.locator("#burn canvas")).to_be_visible()
    expect(page.locator("#budget [data-plot-unknown]")).to_contain_text("Unknown")
    expect(page.locator("#budget canvas")).to_have_count(0)
    expect(page.locator("#budget [data-plot-unknown]")).to_be_visible()


@pytest.mark.parametrize("least", [0.9, 0, -0.2, -1, -3, -3.2, -32.66, -800, -123456])
def test_axis_of_a_budget_has_five_labels_at_most_and_room_for_the_least(desks, least):
    page = desks.open_desk(person("viewer")).open("/slos/")

    levels = page.evaluate(
        "least => import('/static/js/plots/scales.js').then((found) => found.levelTicks(least))",
        least,
    )

    assert 2 <= len(levels) <= 5
    assert levels == sorted(levels)
    assert levels[0] <= least


FITTED = """([times, values]) =>
    import('/static/js/plots/scales.js').then((one) => one.fittedRange(times, [{ values }]))"""
HOURS = [hour * 3600 for hour in range(25)]


@pytest.mark.parametrize(
    ("known", "hours"),
    [
        (range(25), None),
        (range(20, 25), [(20 - 0.4) * 3600, 24 * 3600]),
        ([24], [24 * 3600 - 1800, 24 * 3600]),
        ([], None),
    ],
)
def test_plot_begins_shortly_before_anything_is_known(desks, known, hours):
    page = desks.open_desk(person("viewer")).open("/slos/")
    values = [0.5 if hour in known else None for hour in range(25)]

    assert page.evaluate(FITTED, [HOURS, values]) == hours


def test_plots_tell_times_in_utc_where_somebody_has_chosen_so(desks):
    page = desks.open_desk(person("viewer")).open("/slos/")
    at = "import('/static/js/plots/formatting.js').then((one) => one.formatTime(1764000000))"
    page.evaluate("document.documentElement.dataset.zone = 'Asia/Seoul'")
    assert page.evaluate(at) == "25 Nov, 01:00"

    page.evaluate("document.documentElement.dataset.times = 'utc'")

    assert page.evaluate(at) == "24 Nov, 16:00"


LABELS = """marks => import('/static/js/plots/annotations.js').then((one) =>
    one.layoutLabels(marks, (at) => at, 600, (text) => 6 * text.length))"""


def band(begin: int, end: int | None, name: str, kind: str = "episode") -> dict[str, object]:
    return {"kind": kind, "name": name, "from": begin, "to": end}


def test_labels_of_events_at_the_same_time_lie_in_rows_and_do_not_overlap(desks):
    page = desks.open_desk(person("viewer")).open("/slos/")
    marks = [band(10 * n, 10 * n + 200, f"feature:f{n}") for n in range(3)]
    marks += [band(400, None, "feature:long" * 9), band(590, None, "Page 1h/5m", "alert")]

    found = page.evaluate(LABELS, marks)

    rows = {one["mark"]["name"]: one["row"] for one in found["labels"]}
    assert [rows[f"feature:f{n}"] for n in range(3)] == [0, 1, 2]
    assert rows["Page 1h/5m"] != rows["feature:long" * 9]
    assert all(one["left"] + 6 * len(one["text"]) <= 600 for one in found["labels"])
    assert max(len(one["text"]) for one in found["labels"]) <= 29


def test_events_without_a_free_row_have_no_label(desks):
    page = desks.open_desk(person("viewer")).open("/slos/")

    found = page.evaluate(LABELS, [band(n, None, f"feature:f{n}") for n in range(9)])

    assert (found["rows"], len(found["labels"])) == (4, 4)


@needs_library
@pytest.mark.parametrize("options", [{}, PHONE])
def test_page_does_not_move_while_plots_are_drawn(desks, options):
    burning()
    desk = desks.open_desk(person("viewer"), **options)
    desk.page.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
        " window.shift += one.value; }).observe({ type: 'layout-shift', buffered: true });"
    )

    page = desk.open(ONE)

    expect(page.locator("#burn canvas")).to_be_visible()
    expect(page.locator("#budget canvas")).to_be_visible()
    page.wait_for_timeout(300)
    assert page.evaluate("window.shift") == 0
