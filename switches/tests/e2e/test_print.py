"""The printed weekly report: tables, black on white, without controls."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.report import services as reports
from switches.report import weeks
from switches.report.compose import get_zone
from switches.tests.browsers import engaged, overdue

pytestmark = pytest.mark.e2e
LOOKS = """
name => [...document.querySelectorAll(name)].map(one => {
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  return {display: box.width && box.height ? style.display : 'none',
          colour: style.color, ground: style.backgroundColor};
})
"""
CLEAR, WHITE, BLACK = "rgba(0, 0, 0, 0)", "rgb(255, 255, 255)", "rgb(0, 0, 0)"
A4 = {"width": 718, "height": 1000}  # The page without its margins.


def looks(page, name):
    return page.evaluate(LOOKS, name)


@pytest.fixture
def paper(desks):
    engaged("global:all")
    overdue("segment:late")
    for number in range(40):
        engaged(f"feature:f{number}")
    now = db_now()
    week = weeks.week_of(now, get_zone())
    lee = person("approver", "lee")
    reports.generate_report(week=week, actor=lee.as_actor(), now=now)
    page = desks.open_desk(lee, viewport=A4, color_scheme="dark").open(f"/reports/weekly/{week}/")
    page.emulate_media(media="print", color_scheme="dark")
    return page


def test_report_on_paper_is_tables_in_black_on_white(paper):
    cells = looks(paper, ".report__table--rows td")
    assert cells
    assert {cell["display"] for cell in cells} == {"table-cell"}
    assert {head["display"] for head in looks(paper, ".report__table--rows thead")} == {
        "table-header-group"
    }
    everything = looks(paper, "body, main, .panel, .report__table, .report__table td")
    assert {one["ground"] for one in everything} <= {CLEAR, WHITE}
    assert {cell["colour"] for cell in cells} <= {BLACK, "rgb(51, 51, 51)"}


def test_nothing_to_click_is_printed(paper):
    for name in (".sidebar", ".bars", ".toolbar", ".skip-link", ".button", "form", "nav", "dialog"):
        assert {one["display"] for one in looks(paper, name)} <= {"none"}, name


def test_nothing_hangs_over_the_edge_of_the_page(paper):
    assert paper.evaluate("document.documentElement.scrollWidth") <= A4["width"]
