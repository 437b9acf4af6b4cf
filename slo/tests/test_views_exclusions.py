"""The forms to exclude a span and to count it again, with the budget before and after."""

from datetime import timedelta

import pytest
from django.utils import timezone

from slo.models import Exclusion
from switches.tests.browsers import browser_as, page, text

from . import factories
from .factories import REASON
from .month_of_events import Incident, excluded, month

pytestmark = pytest.mark.django_db
NEW = "/slos/core-availability/exclusions/new/"
TYPED = "%Y-%m-%dT%H:%M"


def span(now, ago, minutes):
    since = now - timedelta(minutes=ago)
    until = since + timedelta(minutes=minutes)
    return {"starts_at": f"{since:{TYPED}}", "ends_at": f"{until:{TYPED}}", "reason": REASON}


def create_outage(now):
    slo = factories.slo(target=0.99)
    month(slo, now, [Incident(200, 60, 0.5)], days=6)
    return slo


def test_before_and_after_are_shown_while_one_types():
    now = timezone.now()
    create_outage(now)

    html = text(
        page(
            browser_as("operator").post(
                NEW, span(now, 210, 80), headers={"HX-Request": "true", "HX-Target": "outlook"}
            )
        )
    )

    assert "Budget left now" in html
    assert "1 h 20 min with" in html
    assert not Exclusion.objects.exists()


def test_span_is_left_out_and_the_answer_says_what_it_did():
    now = timezone.now()
    create_outage(now)
    browser = browser_as("operator")

    response = browser.post(NEW, span(now, 210, 80), follow=True)

    assert Exclusion.objects.get().reason == REASON
    assert "budget left" in text(page(response))


@pytest.mark.parametrize("fields", [{"ends_at": ""}, {"starts_at": "soon"}, {"reason": ""}])
def test_what_is_missing_is_asked_for(fields):
    now = timezone.now()
    create_outage(now)

    response = browser_as("operator").post(NEW, {**span(now, 210, 80), **fields})

    assert response.status_code == 422
    assert not Exclusion.objects.exists()


def test_end_before_the_start_is_refused():
    now = timezone.now()
    create_outage(now)

    response = browser_as("operator").post(NEW, span(now, 210, -10))

    assert response.status_code == 422
    assert "later than the start" in text(page(response))


def test_span_counts_again():
    now = timezone.now()
    slo = create_outage(now)
    one = excluded(slo, 29_000_000, 29_000_060)
    path = f"/slos/core-availability/exclusions/{one.pk}/remove/"
    browser = browser_as("operator")
    assert one.reason in text(page(browser.get(path)))

    response = browser.post(path, {"reason": REASON})

    assert response.status_code == 302
    one.refresh_from_db()
    assert one.removed_at is not None


def test_viewer_may_not():
    now = timezone.now()
    create_outage(now)
    browser = browser_as("viewer")

    assert browser.get(NEW).status_code == 403
    assert browser.post(NEW, span(now, 210, 80)).status_code == 403
    assert (
        browser.post(
            NEW, span(now, 210, 80), headers={"HX-Request": "true", "HX-Target": "outlook"}
        ).status_code
        == 403
    )


def test_plot_hands_its_moments_over_to_the_form():
    factories.slo()

    html = page(browser_as("operator").get(f"{NEW}?starts_at=2026-11-02T03:04:00Z&ends_at=x"))

    assert 'value="2026-11-02T03:04"' in html
