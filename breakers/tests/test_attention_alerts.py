"""Tests that attention items of alerts don't repeat those of open breakers."""

import pytest

from breakers import attention
from breakers.outages import services as outages
from slo import attention as alerts

from .alert_helpers import look
from .fleet import NOW, dependency, minute, reports

pytestmark = pytest.mark.django_db


def test_alerts_wait_but_not_twice_with_an_open_breaker():
    about = dependency(criticality="high")
    reports("core/a1", "open")
    minute(about, success=50, timeout=50)
    look(NOW)

    (found,) = alerts.list_alerts_and_gaps(NOW)

    assert found.title[:12] == "50 % of the "
    assert found.detail.endswith("Check whether the callee is slow or the timeout too short.")
    assert len(attention.list_open_breakers(NOW)) == 1


def test_an_alert_of_an_open_breaker_that_waits_nowhere_else_waits():
    dependency(criticality="low")
    reports("core/a1", "open")
    look(NOW)

    (found,) = alerts.list_alerts_and_gaps(NOW)

    assert found.title == "The breaker of core → oracle is open in the only reporting instance"


def test_an_outage_that_lasts_waits():
    dependency(on_outage={"action": "trip", "switch": "segment:oracle", "for_seconds": 30})
    reports("core/a1", "open")
    outages.watch_outages(NOW)

    (items,) = attention.list_outages(NOW)

    assert items.detail == "Its outage policy acts if this continues."
    assert items.path == "/breakers/core/oracle/"
