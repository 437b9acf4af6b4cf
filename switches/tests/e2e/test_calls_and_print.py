"""A browser on the plot of a switch's calls, its sparkline, and the printed weekly report."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.instances.check_series import counted_until
from controlplane.core.models import CheckCount
from switches.report import compose, weeks
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e
PAGE = "/switches/segment/finance/"
PHONE = {"viewport": {"width": 320, "height": 568}, "has_touch": True, "is_mobile": True}


def blocked_for(minutes: int) -> None:
    """Engage a switch for so many minutes, in which calls were blocked, and allowed before."""
    now = db_now()
    last = counted_until(now)
    engaged("segment:finance", now=now - timedelta(minutes=minutes))
    CheckCount.objects.bulk_create(
        CheckCount(
            switch="segment:finance",
            seconds=60,
            start=last - 60 * back,
            allowed=0 if back < minutes else 40,
            blocked=30 if back < minutes else 0,
        )
        for back in range(1, 31)
    )


@pytest.mark.parametrize("options", [{}, PHONE])
def test_plot_of_calls_is_drawn_named_and_changes_its_range(desks, options):
    blocked_for(10)

    page = desks.open_desk(person("viewer"), **options).open(PAGE)
    plot = page.locator("#calls")

    name = re.compile(r"^Calls of segment:finance, last 1 h: [0-9,]+ of [0-9,]+ calls blocked$")
    expect(plot.get_by_role("img", name=name)).to_be_visible()
    blocked = plot.locator(".calls-plot__blocked").bounding_box()
    assert blocked["height"] > 40
    expect(plot.locator(".calls-plot__marker")).to_have_count(1)
    expect(plot.locator(".calls-marks li")).to_contain_text("Engaged by")
    plot.get_by_role("link", name="24 h").click()
    expect(page).to_have_url(re.compile(r"calls=24h"))
    expect(plot.get_by_role("link", name="24 h")).to_have_attribute("aria-current", "true")
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    plot.get_by_text("Calls as a table").click()
    expect(plot.get_by_role("columnheader", name="Blocked")).to_be_visible()
    expect(plot.get_by_role("cell", name="No reports").first).to_be_visible()


def test_row_of_the_board_has_a_sparkline_that_is_named(desks):
    blocked_for(10)

    page = desks.open_desk(person("viewer")).open("/")

    spark = page.locator("#row-segment-finance .call-spark")
    expect(spark).to_have_attribute(
        "aria-label", re.compile(r"^Last hour: [0-9,]+ of [0-9,]+ calls")
    )
    expect(page.get_by_role("columnheader", name="Calls", exact=True)).to_be_visible()


def test_usual_keys_do_not_break_on_the_board(desks):
    engaged("experiment:rag-v2")

    desk = desks.open_desk(person("operator"), viewport={"width": 1280, "height": 800})
    name = desk.open("/").locator("#row-experiment-rag-v2 .switch-name")

    tops = name.evaluate("link => Array.from(link.getClientRects(), part => part.top)")
    assert len(set(tops)) == 1


def test_report_is_printed_by_its_button(desks):
    week = weeks.week_of(db_now(), compose.get_zone())
    desk = desks.open_desk(person("viewer"))
    desk.page.add_init_script("window.print = () => { window.printed = true; }")

    page = desk.open(f"/reports/weekly/{week}/")
    page.get_by_role("button", name="Print").click()

    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    expect(page.get_by_role("heading", name=re.compile("^Week "))).to_be_visible()
