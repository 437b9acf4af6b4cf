"""The number of open alerts in the navigation and on the page of alerts."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from slo.models import Alert
from slo.templatetags.slos import open_alerts
from switches.tests.browsers import Tags, browser_as, page, text

pytestmark = pytest.mark.django_db


def create_alert(severity, **fields):
    now = db_now()
    columns = {
        "kind": "threshold",
        "rule": "deep",
        "summary": "deep",
        "severity": severity,
        **fields,
    }
    subject = f"queue-{Alert.objects.count()}"
    return Alert.objects.create(subject=subject, opened_at=now, firing_at=now, **columns)


@pytest.mark.parametrize(
    ("severities", "tone"),
    [
        (["info", "warning", "critical"], "stop"),
        (["info", "warning"], "warn"),
        (["info"], ""),
        ([], ""),
    ],
)
def test_worst_open_alert_gives_the_tone(severities, tone):
    for severity in severities:
        create_alert(severity)
    create_alert("critical", resolved_at=db_now())

    assert open_alerts() == {"total": len(severities), "tone": tone}


def test_page_and_navigation_show_the_same_number_as_the_list():
    for severity in ("info", "warning", "warning"):
        create_alert(severity, group=7)
    create_alert("warning", acknowledged_at=db_now())
    create_alert("critical", resolved_at=db_now())

    html = page(browser_as("viewer").get("/alerts/"))

    assert html.count('<li\n  class="list-row alert-row') == 4
    assert "Alerts 4 open" in text(html)
    assert "4 open alerts 3 warnings. 1 for information. 3 not acknowledged." in text(html)
    assert 'class="headline__warn"' in html
    assert "headline--calm" not in html
    assert Tags(html).having("a", href="/alerts/", aria_current="page")


@pytest.mark.parametrize(
    ("alerts", "expected"), [(1, "It is acknowledged."), (2, "All are acknowledged.")]
)
def test_page_says_that_all_open_alerts_are_acknowledged(alerts, expected):
    for _ in range(alerts):
        create_alert("warning", acknowledged_at=db_now())

    page_text = text(page(browser_as("viewer").get("/alerts/")))

    assert f"warning{'s' if alerts > 1 else ''}. {expected}" in page_text


def test_they_are_counted_where_they_are_in_one_question():
    create_alert("warning")

    with CaptureQueriesContext(connection) as queries:
        open_alerts()

    (one,) = queries.captured_queries
    assert one["sql"].startswith("SELECT COUNT(")
