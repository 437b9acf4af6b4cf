"""The pages of reports: the list, a report to read and print, and the form to sign it."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.page_registry import REPORT_SECTIONS, ReportSection
from controlplane.core.registry import RegisteredFunction
from controlplane.notify.delivery.tests.message_samples import hook
from controlplane.notify.models.targets import EscalationStep
from switches.models import WeeklyReport
from switches.report import services, weeks
from switches.report.compose import get_zone
from switches.report.tests.house import SHELL, engage, release
from switches.tests.browsers import Tags, browser, browser_as, page, text

pytestmark = pytest.mark.django_db
HISTORY = "/reports/weekly/"
RTL = "ارتفاع معدل الأخطاء <script>alert(1)</script>"


@pytest.fixture
def week():
    return weeks.week_of(db_now(), get_zone()).later(-1)


@pytest.fixture
def kept(week):
    """Generate last week's report, with an engaged and a released switch; return its path."""
    noon = week.starts_at(get_zone()) + (week.ends_at(get_zone()) - week.starts_at(get_zone())) / 2
    engage("segment:finance", noon, reason=RTL, expires_in="30d")
    engage("feature:search", noon)
    release("feature:search", noon + (week.ends_at(get_zone()) - noon) / 4)
    services.generate_report(week=week, actor=SHELL, now=db_now())
    return f"{HISTORY}{week}/"


def test_without_a_report_the_page_says_when_the_first_comes():
    html = page(browser_as("viewer").get(HISTORY))

    assert "No reports yet" in html
    assert "This week so far" in html


def test_the_history_says_who_signed_and_what_they_said(kept, week):
    ayse = person("approver", "ayse")
    before = text(page(browser(ayse).get(HISTORY)))
    browser(ayse).post(f"{kept}sign/", {"comment": "settled with the vendor"})

    after = text(page(browser(ayse).get(HISTORY)))

    assert "Not signed off" in before
    assert "signed by user ayse" in after
    assert "settled with the vendor" in after


def test_history_goes_on_page_by_page():
    running = weeks.week_of(db_now(), get_zone())
    WeeklyReport.objects.bulk_create(
        WeeklyReport(
            week=str(week),
            starts_at=week.starts_at(get_zone()),
            ends_at=week.ends_at(get_zone()),
            generated_at=week.ends_at(get_zone()),
            final=True,
            content={},
        )
        for week in (running.later(-n) for n in range(1, 40))
    )
    client = browser_as("viewer")

    first = page(client.get(HISTORY))
    second = page(client.get(HISTORY, {"before": str(running.later(-26))}))

    assert f"{HISTORY}{running.later(-26)}/" in first
    assert f"{HISTORY}{running.later(-27)}/" not in first
    assert f"{HISTORY}{running.later(-27)}/" in second
    assert f"{HISTORY}{running.later(-39)}/" in second
    assert client.get(HISTORY, {"before": "x"}).status_code == 200


def test_a_report_links_each_row_and_shows_its_anchor(kept):
    html = page(browser_as("viewer").get(kept))

    report = WeeklyReport.objects.get()
    links = [attributes.get("href") for tag, attributes in Tags(html).found if tag == "a"]
    assert "/switches/segment/finance/" in links
    assert f"audit verify --anchor {report.anchor_id}:{report.anchor_hash}" in html
    assert "<script>alert" not in html
    assert "ارتفاع" in html


def test_charts_are_drawn_without_a_style_and_told_in_words(kept):
    tags = Tags(page(browser_as("viewer").get(kept)))

    drawings = tags.having("svg", role="img")
    assert len(drawings) >= 3
    assert all("most on" in str(drawing["aria-label"]) for drawing in drawings)
    assert not [attributes for _, attributes in tags.found if "style" in attributes]
    assert all(float(str(bar["height"])) >= 0 for bar in tags.having("rect", class_="chart__bar"))


def test_the_running_week_can_be_read_and_not_signed(week):
    EscalationStep.objects.update(target=hook())
    html = page(browser_as("approver").get(f"{HISTORY}{week.later(1)}/"))

    assert "So far" in html
    assert "Nothing needs action" in html
    assert f"{week.later(1)}/sign/" not in html


def test_part_that_is_not_known_has_a_badge_that_says_so(week, monkeypatch):
    words = ("Too little data for 1 budget.", "unknown")
    blind = ReportSection("blind", "Budgets", *words, headline="1 of 1 error budget unknown")
    monkeypatch.setattr(REPORT_SECTIONS, "_items", {"blind": RegisteredFunction(lambda *_: blind)})

    html = page(browser_as("viewer").get(f"{HISTORY}{week.later(1)}/"))

    tile = html.split('href="#blind"', 1)[1].split("</a>", 1)[0]
    badge = html.split('id="blind-title"', 1)[1].split("</div>", 1)[0]
    assert "1 of 1 error budget unknown" in tile
    assert "Unknown" in badge
    assert "state--quiet" in badge
    assert "Nothing needs action" not in html


def test_an_approver_signs_by_a_plain_form(kept, week):
    ayse = browser(person("approver", "ayse"))
    assert f'action="{kept}sign/"' in page(ayse.get(kept))

    response = ayse.post(f"{kept}sign/", {"comment": "read\x00 it"}, follow=True)

    assert f"{week} signed off." in page(response)
    assert "Signed off by" in page(response)
    assert WeeklyReport.objects.get().comment == "read it"


def test_form_of_a_report_that_was_made_anew_since_signs_nothing(kept):
    report = WeeklyReport.objects.get()
    ayse = browser(person("approver", "ayse"))
    assert f'name="anchor_id" value="{report.anchor_id}"' in page(ayse.get(kept))

    response = ayse.post(f"{kept}sign/", {"anchor_id": report.anchor_id - 1})

    assert response.status_code == 409
    assert "generated again since you opened it" in page(response)
    assert WeeklyReport.objects.get().signed_at is None


def test_a_viewer_sees_no_form_and_may_not_send_one(kept):
    viewer = browser_as("viewer")

    assert f"{kept}sign/" not in page(viewer.get(kept))
    assert viewer.post(f"{kept}sign/").status_code == 403


def test_a_second_signature_is_told_who_was_first(kept):
    browser(person("approver", "ayse")).post(f"{kept}sign/")

    response = browser(person("admin", "root")).post(f"{kept}sign/")

    assert response.status_code == 409
    assert "user:ayse has already signed" in page(response)


@pytest.mark.parametrize("path", ["2099-W01/", "x/", "2020-W01/"])
def test_a_week_without_a_report_is_not_found(path):
    assert browser_as("viewer").get(f"{HISTORY}{path}").status_code == 404


def test_signed_out_people_are_sent_to_sign_in(client, kept):
    assert client.get(HISTORY).status_code == 302
    assert client.get(kept).status_code == 302
    assert client.post(f"{kept}sign/").status_code == 302
