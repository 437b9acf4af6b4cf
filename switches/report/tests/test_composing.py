"""Composing a report: a failing section hides no other, and days follow the time zone."""

from datetime import UTC, timedelta

import pytest
from django.db import connection

from controlplane.core.page_registry import REPORT_SECTIONS, ReportRow, ReportSection
from controlplane.core.registry import RegisteredFunction
from switches.report.compose import compose, worst_first
from switches.report.renderer import build_sections, render_lines
from switches.report.tests.house import DUE, MONDAY, NEXT_MONDAY, WEEK, engage, make_moment, section

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def compose_week(now=DUE):
    return compose(WEEK, now)


@pytest.mark.parametrize(
    "in_transaction",
    [True, pytest.param(False, marks=pytest.mark.django_db(transaction=True))],
)
def test_a_section_that_fails_hides_nothing_but_itself(monkeypatch, in_transaction):
    def broken(_start, _end, _now, _is_owned):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    only(monkeypatch, broken, *REPORT_SECTIONS.functions())
    engage("segment:a", make_moment(1))

    content = compose_week()

    assert connection.in_atomic_block is in_transaction
    first = content["sections"][0]
    assert (first["title"], first["unread"], first["tone"]) == ("Broken", True, "warn")
    assert section(content, "active")["total"] == 1


def test_a_section_that_is_no_plain_json_is_not_read(monkeypatch):
    def strange(_start, end, _now):
        row = ReportRow({"when": object()}, "/")
        return ReportSection("s", "S", "", "good", ("when",), (row,), 1)

    only(monkeypatch, strange)

    assert compose_week()["sections"][0]["unread"]


def test_what_is_not_known_comes_before_what_is_fine_and_is_never_all_calm(monkeypatch):
    def make_composer(tone):
        return lambda *_: ReportSection(tone, tone, "", tone)

    only(monkeypatch, make_composer("good"), make_composer("unknown"))

    content = compose_week()

    assert [part["tone"] for part in worst_first(content)] == ["unknown", "good"]
    assert [part["word"] for part in build_sections(content)] == ["No action", "Unknown"]
    assert " ? unknown: " in [*render_lines(content, UTC, "")]


def test_days_go_by_the_clock_of_the_house(settings):
    settings.TIME_ZONE = "Asia/Seoul"
    engage("segment:a", MONDAY - 2 * HOUR)  # Monday 07:00 in Seoul.

    content = compose_week(NEXT_MONDAY)

    (began,) = [c for c in section(content, "flow")["charts"] if c["title"] == "Engaged per day"]
    assert began["bars"][0] == ["Mon 16", 1.0]


def only(monkeypatch, *builders):
    """Replace the registered report sections by these."""
    items = {str(place): RegisteredFunction(build) for place, build in enumerate(builders)}
    monkeypatch.setattr(REPORT_SECTIONS, "_items", items)
