"""Large updates are deferred to a tick, with the same result."""

import pytest

from slo.ingest import deferred_updates
from slo.models import CounterMinute, DeferredUpdate, Sli

from .sample_helpers import MINUTE, NOW, load_counters, moment_at, objective, record, sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the number of rows that may move at once."""
    monkeypatch.setattr(deferred_updates, "MAX_ROWS", 1000)


@pytest.fixture
def slis() -> list[Sli]:
    return [objective(f"slo-{n}") for n in range(4)]


def long_running(slis: list[Sli]) -> None:
    """Record processes that began to count a day ago, and report for the first time."""
    samples = [sample(sli, 0, 1440, 1440, started_at=moment_at(-86_400)) for sli in slis]
    record(samples, now=NOW)


def test_few_that_began_long_ago_are_there_at_once(slis: list[Sli]) -> None:
    long_running(slis)

    assert not DeferredUpdate.objects.exists()
    assert {load_counters(sli, MINUTE, MINUTE)[0] for sli in slis} == {(1440, 1440, 0)}


def test_many_that_began_long_ago_follow(few_rows: None, slis: list[Sli]) -> None:
    long_running(slis)
    assert CounterMinute.objects.count() == 0

    assert deferred_updates.apply_deferred(most=10) > 0
    deferred_updates.apply_deferred(most=10**6)

    for sli in slis:
        expected = [(float(n), float(n), 0) for n in range(1441)]
        assert load_counters(sli, MINUTE - 1440, MINUTE) == expected
    assert deferred_updates.apply_deferred(most=10) == 0


def test_what_goes_on_meanwhile_is_there_at_once(few_rows: None, slis: list[Sli]) -> None:
    record([sample(sli, -60, 0, 0, source="b") for sli in slis], now=NOW)
    long_running(slis)

    record([sample(sli, 0, 5, 5, source="b") for sli in slis], now=NOW)
    record([sample(sli, 30, 1441, 1441) for sli in slis], now=NOW)

    assert {load_counters(sli, MINUTE + 1, MINUTE + 1)[0] for sli in slis} == {(6, 6, 2)}
    deferred_updates.apply_deferred(most=10**6)
    assert {load_counters(sli, MINUTE + 1, MINUTE + 1)[0] for sli in slis} == {(1446, 1446, 2)}


def test_day_that_comes_late_is_taken_away_again_where_it_was_spread(
    few_rows: None, slis: list[Sli]
) -> None:
    record([sample(sli, -86_400, 0, 0) for sli in slis], now=NOW)
    record([sample(sli, 0, 1440, 1440) for sli in slis], now=NOW)
    record([sample(sli, -43_200, 0, 0) for sli in slis], now=NOW)
    assert DeferredUpdate.objects.filter(good__lt=0).count() == len(slis)

    deferred_updates.apply_deferred(most=10**6)

    for sli in slis:
        assert load_counters(sli, MINUTE - 720, MINUTE - 720)[0][:2] == (0, 0)
        assert load_counters(sli, MINUTE - 360, MINUTE - 360)[0][:2] == (720, 720)
        assert load_counters(sli, MINUTE, MINUTE)[0][:2] == (1440, 1440)
