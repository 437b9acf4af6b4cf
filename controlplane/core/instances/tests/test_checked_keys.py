"""Checked keys: how often each is checked, by which services, and when last."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.core.instances import rates
from controlplane.core.instances.checked_keys import (
    RANKING_AGE,
    find_keys,
    load_checked_keys,
    rank_keys,
)
from controlplane.core.instances.queries import list_callers
from controlplane.core.models import CheckCount, Instance

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 12, 15, tzinfo=UTC)
THIS_HOUR = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp())


def report(name: str, service: str, at: datetime, calls: int, *switches: str) -> None:
    """Create an instance with this many calls in the minute before `at`."""
    entry = rates.add_calls(None, calls, 0, at, since=at - timedelta(minutes=1))
    checks = dict.fromkeys(switches, entry)
    Instance.objects.create(id=name, service=service, checks=checks)


def count(switch: str, start: int, calls: int) -> None:
    CheckCount.objects.create(switch=switch, seconds=3600, start=start, allowed=calls)


def test_rates_of_instances_are_added_up_by_service() -> None:
    report("core/1", "core", NOW, 120, "feature:a", "feature:b")
    report("core/2", "core", NOW, 60, "feature:a")
    report("billing/1", "billing", NOW - timedelta(seconds=3), 600, "feature:a")
    report("token:ci", "token:ci", NOW, 60, "feature:a")

    keys = load_checked_keys(["feature:a", "feature:b", "feature:none"], NOW)

    found = [
        (one.id, one.instances, round(one.calls_per_second)) for one in keys["feature:a"].services
    ]
    assert found == [("billing", 1, 10), ("core", 2, 3), ("", 1, 1)]
    assert round(keys["feature:a"].calls_per_second) == 14
    assert (keys["feature:a"].callers, keys["feature:a"].freshness.at) == (4, NOW)
    assert [one.id for one in keys["feature:b"].services] == ["core"]
    assert not keys["feature:none"].is_checked
    assert keys["feature:none"].freshness.at is None


def test_instances_that_stopped_are_counted_by_service() -> None:
    for name in ("core/1", "core/2", "billing/1"):
        report(name, name.partition("/")[0], NOW, 60, "feature:a")
    Instance.objects.filter(service="core").update(heard_at=NOW, stopped_at=NOW)
    Instance.objects.filter(id="core/2").update(heard_at=NOW + timedelta(seconds=1))

    services = load_checked_keys(["feature:a"], NOW)["feature:a"].services

    assert {one.id: (one.instances, one.stopped) for one in services} == {
        "core": (2, 1),
        "billing": (1, 0),
    }


def test_instances_that_stopped_add_nothing_to_the_rate() -> None:
    report("core/1", "core", NOW, 120, "feature:a")
    report("core/2", "core", NOW, 60, "feature:a")
    report("billing/1", "billing", NOW, 600, "feature:a")
    Instance.objects.exclude(id="core/2").update(heard_at=NOW, stopped_at=NOW)

    key = load_checked_keys(["feature:a"], NOW)["feature:a"]
    callers, _ = list_callers("feature:a", NOW)

    assert {one.id: round(one.calls_per_second) for one in key.services} == {
        "core": 1,
        "billing": 0,
    }
    assert {one.id: round(one.calls_per_second) for one in callers} == {
        "core/1": 0,
        "core/2": 1,
        "billing/1": 0,
    }
    assert not key.has_stopped
    Instance.objects.update(heard_at=NOW, stopped_at=NOW)
    assert load_checked_keys(["feature:a"], NOW)["feature:a"].has_stopped


@pytest.mark.parametrize(
    ("minutes", "is_checked", "is_current"),
    [(0.5, True, True), (59, True, False), (61, False, False)],
)
def test_key_counts_as_checked_for_an_hour(
    minutes: float, is_checked: bool, is_current: bool
) -> None:
    seen = NOW - timedelta(minutes=minutes)
    report("core/1", "core", seen, 60, "feature:a")

    key = load_checked_keys(["feature:a"], NOW)["feature:a"]

    assert (key.is_checked, key.freshness.is_current) == (is_checked, is_current)
    assert key.freshness.at == seen


def test_keys_are_ranked_by_the_checks_of_the_last_sixty_minutes() -> None:
    count("feature:faded", THIS_HOUR - 3600, 1000)
    count("feature:busy", THIS_HOUR, 800)
    count("segment:busy", THIS_HOUR, 10)
    count("feature:over", THIS_HOUR - 7200, 9000)

    assert list(rank_keys(NOW).items()) == [
        ("feature:busy", 800),
        ("feature:faded", 750),
        ("segment:busy", 10),
    ]
    assert find_keys("BUSY seg", NOW) == ["segment:busy"]
    assert find_keys("%", NOW) == []


def test_ranking_is_read_again_once_it_is_too_old() -> None:
    count("feature:first", THIS_HOUR, 10)
    rank_keys(NOW)
    count("feature:second", THIS_HOUR, 20)

    assert list(rank_keys(NOW + RANKING_AGE)) == ["feature:first"]
    later = NOW + RANKING_AGE + timedelta(milliseconds=1)
    assert list(rank_keys(later)) == ["feature:second", "feature:first"]
