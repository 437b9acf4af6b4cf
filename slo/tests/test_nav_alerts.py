"""The number of open alerts in the navigation."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from slo.models import Alert
from slo.templatetags.slos import open_alerts

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


def test_open_ones_that_nobody_knows_of_are_counted_but_for_mere_information():
    for severity in ("critical", "critical", "warning", "info"):
        create_alert(severity)
    create_alert("critical", acknowledged_at=db_now())
    create_alert("warning", resolved_at=db_now())

    assert open_alerts() == {"total": 3, "critical": 2}


def test_nothing_open_is_zero():
    assert open_alerts() == {"total": 0, "critical": 0}


def test_they_are_counted_where_they_are_in_one_question():
    create_alert("warning")

    with CaptureQueriesContext(connection) as queries:
        open_alerts()

    (one,) = queries.captured_queries
    assert one["sql"].startswith("SELECT COUNT(")
