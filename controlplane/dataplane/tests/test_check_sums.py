"""Check counts per switch and minute: increments of reports, lost rather than counted twice."""

from datetime import datetime, timedelta

import pytest

from controlplane.core.instances import retention_rules
from controlplane.core.models import CheckCount
from controlplane.core.retention import purge
from controlplane.dataplane.ingest.check_sums import CheckIncrement, CheckSums
from controlplane.dataplane.tests.breaker_reports import NEXT_BOOT, Reporting, at_work, make_report
from controlplane.dataplane.tests.ledgers import NOW
from controlplane.dataplane.tests.lines import wait_until

__all__ = ["at_work"]
FINANCE, RANKER = "segment:finance", "feature:ranker"


def checks(**counts: tuple[int, int]) -> list[dict[str, object]]:
    ids = {"finance": FINANCE, "ranker": RANKER}
    return [
        {"switch": ids[name], "allowed": allowed, "blocked": blocked}
        for name, (allowed, blocked) in counts.items()
    ]


def counted(switch: str = FINANCE, seconds: int = 60) -> dict[int, tuple[int, int]]:
    """Return the allowed and blocked checks by the minute since `NOW`."""
    rows = CheckCount.objects.filter(switch=switch, seconds=seconds)
    return {(row.start - int(NOW.timestamp())) // 60: (row.allowed, row.blocked) for row in rows}


def flush(at_work: Reporting) -> None:
    at_work.ledger.check_sums._flushed_at = float("-inf")
    wait_until(lambda: not at_work.ledger.check_sums, 5)
    at_work.report(make_report(instance="z9", boot=str(NEXT_BOOT)))  # Written after the others.


@pytest.mark.usefixtures("published")
def test_reports_add_what_they_counted_since_the_previous_one(at_work: Reporting) -> None:
    at_work.report(make_report(checks=checks(finance=(100, 5)), started_at="2026-11-21T12:00:00Z"))
    at_work.report(make_report(checks=checks(finance=(130, 15)), seq=2), after=20)
    at_work.report(make_report(checks=checks(finance=(130, 15)), seq=2), after=1)
    at_work.report(make_report(checks=checks(finance=(130, 15), ranker=(0, 2)), seq=3), after=1)
    flush(at_work)

    assert counted() == {0: (130, 15)}
    assert counted(RANKER) == {0: (0, 2)}
    assert counted(seconds=3600) == {0: (130, 15)}


@pytest.mark.usefixtures("published")
def test_report_after_a_silence_is_spread_over_its_minutes(at_work: Reporting) -> None:
    at_work.report(make_report(checks=checks(finance=(0, 0))))
    at_work.report(make_report(checks=checks(finance=(300, 150)), seq=2), after=150)
    flush(at_work)

    assert counted() == {0: (120, 60), 1: (120, 60), 2: (60, 30)}
    assert counted(seconds=3600) == {0: (300, 150)}


@pytest.mark.usefixtures("published")
def test_counts_of_two_instances_add_up_and_a_repeated_boot_adds_nothing(
    at_work: Reporting,
) -> None:
    for instance in ("a1", "b2"):
        at_work.report(make_report(instance=instance, checks=checks(finance=(0, 0))))
        more = make_report(instance=instance, checks=checks(finance=(4, 6)), seq=2)
        at_work.report(more)
    for number in range(3):
        at_work.report(
            make_report(checks=checks(finance=(900, 900)), boot=str(NEXT_BOOT), started_at=None,
                        seq=number))  # fmt: skip
    flush(at_work)

    assert counted() == {0: (8, 12)}


def test_sums_above_the_limit_are_dropped_and_counted() -> None:
    sums = CheckSums(most=2)
    sums.add(CheckIncrement(f"feature:f{n}", 0.0, 0.0, (1, 0)) for n in range(5))

    assert (len(sums), sums.left_out) == (2, 3)


@pytest.mark.django_db
def test_minutes_are_kept_for_two_days_and_hours_for_ninety() -> None:
    now = NOW + timedelta(days=200)

    def store(seconds: int, at: datetime) -> None:
        CheckCount.objects.create(switch=FINANCE, seconds=seconds, start=int(at.timestamp()))

    for hours in (47, 49):
        store(60, now - timedelta(hours=hours))
    for days in (3, 89, 91):
        store(3600, now - timedelta(days=days))
    purge(retention_rules.CHECK_COUNTS, now)

    left = CheckCount.objects.values_list("seconds", "start")
    ages = {(seconds, int(now.timestamp() - start) // 3600) for seconds, start in left}
    assert ages == {(60, 47), (3600, 72), (3600, 89 * 24)}
