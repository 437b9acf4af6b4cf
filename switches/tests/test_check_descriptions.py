"""Descriptions of checks: figures of now only if a check is as recent."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.core.freshness import assess_freshness
from controlplane.core.instances.checked_keys import RATE_PERIOD, CallingService, CheckedKey
from switches.check_descriptions import describe_checks, name_callers
from switches.templatetags.switchboard import key_checks
from switches.tests.browsers import text

NOW = datetime(2026, 11, 21, 12, 15, tzinfo=UTC)


def calling(
    service: str, rate: float = 12, seconds: int = 3, instances: int = 1, stopped: int = 0
) -> CallingService:
    last_seen = NOW - timedelta(seconds=seconds)
    return CallingService(service, instances, rate, last_seen, stopped=stopped)


def key(*services: CallingService) -> CheckedKey:
    last_seen = max((one.last_seen for one in services), default=None)
    return CheckedKey("feature:a", services, assess_freshness(last_seen, RATE_PERIOD, NOW))


@pytest.mark.parametrize(
    ("checked", "expected"),
    [
        (key(calling("core")), "12/s by core, 3 s ago"),
        (key(calling("core"), calling("billing", 2)), "14/s by core and 1 more, 3 s ago"),
        (key(calling("core", 0, 300)), "last checked by core 5 min ago"),
        (key(calling("core", 0, 29, 2, 2)), "last checked by core 29 s ago, stopped since"),
        (key(calling("core", 6, 29, 2, 1)), "6.0/s by core, 29 s ago"),
        (key(), "no checks reported in the last hour"),
    ],
)
def test_checks_are_described_with_their_time(checked, expected):
    assert describe_checks(checked, NOW) == expected


def test_row_of_stopped_callers_shows_no_rate():
    drawn = text(key_checks(key(calling("core", 0, 29, stopped=1)), NOW))

    assert drawn == "Last checked by core 29 s ago, stopped since"


def test_global_switch_without_checks_of_its_own_is_not_called_unchecked():
    unreported = CheckedKey("global:all", (), assess_freshness(None, RATE_PERIOD, NOW))

    assert describe_checks(unreported, NOW) == "affects all checks"
    assert "Affects all checks" in key_checks(unreported, NOW)


@pytest.mark.parametrize(("instances", "expected"), [(1, "API token"), (2, "API tokens")])
def test_callers_without_a_service_are_tokens(instances, expected):
    assert name_callers([calling("", instances=instances)]) == expected
