"""Import of history from a file, however old."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from controlplane.core.actors import system_actor
from controlplane.core.errors import InvalidInput
from controlplane.core.gates.models import EventCount
from controlplane.core.models import AuditEntry
from slo.counters import compaction, retention
from slo.ingest.csv_import import CsvImport, import_points
from slo.models import DeferredUpdate, Sli

from .sample_helpers import MINUTE, NOW, load_counters

pytestmark = pytest.mark.django_db

SHELL = system_actor("shell:root")
LAST_YEAR = datetime(2025, 1, 1, tzinfo=UTC)
YEAR_MINUTE = int(LAST_YEAR.timestamp()) // 60


def import_lines(sli: Sli, *lines: str) -> CsvImport:
    assert sli.slo is not None
    return import_points(slo=sli.slo, text_lines=lines, actor=SHELL, now=NOW)


def minute_lines(minutes: range, begin: datetime = LAST_YEAR) -> list[str]:
    return [f"{(begin + timedelta(minutes=n)).isoformat()},{9 * n},{10 * n}" for n in minutes]


def test_first_row_is_what_is_counted_from(sli: Sli) -> None:
    outcome = import_lines(sli, "ts,good,total", "2025-01-01T00:00:00Z,90,100", "1735689660,95,110")

    assert outcome == CsvImport(2, 2)
    assert load_counters(sli, YEAR_MINUTE, YEAR_MINUTE + 2) == [(0, 0, 0), (5, 10, 1), (5, 10, 1)]
    assert not EventCount.objects.exists()


def test_same_file_again_adds_nothing_and_a_longer_one_what_is_new(sli: Sli) -> None:
    import_lines(sli, *minute_lines(range(100)))
    compaction.compact_minutes(NOW, most=1000)

    assert (
        str(import_lines(sli, *minute_lines(range(100)))) == "0 points imported, 100 already known"
    )
    assert import_lines(sli, *minute_lines(range(50, 120))).new == 20

    assert load_counters(sli, YEAR_MINUTE + 119, YEAR_MINUTE + 119) == [(9 * 119, 10 * 119, 119)]


def test_files_in_any_order_are_one_history(sli: Sli) -> None:
    import_lines(sli, *minute_lines(range(200, 300)))
    compaction.compact_minutes(NOW, most=1000)
    import_lines(sli, *reversed(minute_lines(range(201))))

    assert load_counters(sli, YEAR_MINUTE + 299, YEAR_MINUTE + 299) == [(9 * 299, 10 * 299, 299)]


def test_reset_and_gap_count_as_they_do_when_pushed(sli: Sli) -> None:
    import_lines(sli, "0.5e9,10,10", "500000060,12,12", "500000660,1,2")

    minute = 500_000_700 // 60
    assert load_counters(sli, minute, minute)[0][:2] == (3, 4)


@pytest.mark.slow
def test_month_of_minutes_is_taken_in_at_once(sli: Sli) -> None:
    begin = NOW - timedelta(days=30)

    import_lines(sli, *minute_lines(range(30 * 1440 + 1), begin))

    assert not DeferredUpdate.objects.exists()
    assert load_counters(sli, MINUTE, MINUTE) == [(9 * 43200, 10 * 43200, 43200)]


def test_wrong_lines_are_named_and_nothing_is_taken(sli: Sli) -> None:
    with pytest.raises(InvalidInput) as caught, transaction.atomic():
        import_lines(
            sli,
            "2025-01-01T00:00:00Z,1,1",
            "",
            "2025-01-01,5",
            "never,1,2",
            "2025-01-01T00:01:00Z,-1,2",
            "2025-01-01T00:01:00Z,3,2",
            "2025-01-01T00:01:00Z,nan,2",
        )

    assert list(caught.value.errors) == [f"line {n}" for n in range(3, 8)]
    assert load_counters(sli, MINUTE, MINUTE) == [(0, 0, 0)]


def test_row_of_the_future_is_refused(sli: Sli) -> None:
    with pytest.raises(InvalidInput) as caught:
        import_lines(sli, "2026-11-20T12:00:59Z,1,1", "2027-01-01T00:00:00Z,2,2")

    assert caught.value.errors == {"line 2": ["ts must not be in the future."]}


def test_import_is_in_the_audit_trail(sli: Sli) -> None:
    import_lines(sli, *minute_lines(range(3)))

    entry = AuditEntry.objects.get(action="slo.points_imported")
    assert (entry.target, entry.actor_name) == ("slo:core-availability", "shell:root")
    assert '"new":3' in entry.after


@pytest.mark.slow
def test_what_was_forgotten_does_not_come_back(sli: Sli) -> None:
    old, young = minute_lines(range(3)), minute_lines(range(60 * 24 * 40, 60 * 24 * 40 + 3))
    import_lines(sli, *old, *young)
    compaction.compact_minutes(NOW, most=10**6)
    retention.purge_old(NOW, at_once=1000, most=10**6)
    last = YEAR_MINUTE + 60 * 24 * 40 + 2
    before = load_counters(sli, last - 100, last)

    outcome = import_lines(sli, *old, *young)

    assert (outcome.new, outcome.old) == (0, 3)
    assert load_counters(sli, last - 100, last) == before
