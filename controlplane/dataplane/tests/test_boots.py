"""Processes that share an instance's name: each event is counted once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.dataplane.ingest import boots, report_merge
from controlplane.dataplane.ingest.instance_rows import InstanceRow, SloEvents
from controlplane.dataplane.ingest.report_merge import merge_report
from controlplane.dataplane.tests.served import EPOCH
from controlplane.dataplane.tests.test_reports import BOOT, EMPTY, NEXT_BOOT, NOW, make_report
from controlplane.dataplane.tests.test_sli import TEN, merge_all


def test_a_late_report_of_a_former_boot_takes_nothing_back() -> None:
    row, _ = merge_all(
        EMPTY, make_report(9, sli={"core": (90, 90)}), make_report(10, sli={"core": (100, 100)})
    )
    next_boot = make_report(1, boot=NEXT_BOOT, started=-5, sli={"core": (4, 5)})
    row, _ = merge_all(row, next_boot, at=NOW + 2 * TEN)

    later = NOW + timedelta(minutes=1)
    for seq, duplicate in ((9, False), (10, True)):
        late = make_report(seq, sli={"core": (90, 90)})
        assert merge_report(row, late, later, EPOCH) == (row, duplicate)
        assert report_merge.list_new_events(row, row, late) == []


def test_report_that_a_relay_delivers_late_adds_its_counts_and_changes_no_boot() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (10, 10)}))
    newer = {"boot": NEXT_BOOT, "started": 15}
    row, _ = merge_all(row, make_report(1, **newer, sli={"core": (2, 3)}), at=NOW + 2 * TEN)

    late, events = merge_all(row, make_report(5, sli={"core": (14, 15)}), at=NOW + TEN)
    assert events == [SloEvents("core", "core/a1", NOW, NOW + TEN, 4, 5)]
    assert (late.boot, late.seq, late.reported_at) == (row.boot, row.seq, row.reported_at)
    assert late.contested_at is None

    again, events = merge_all(late, make_report(5, sli={"core": (14, 15)}), at=NOW + TEN)
    assert (again, events) == (late, [])
    _, events = merge_all(late, make_report(6, sli={"core": (14, 16)}), at=NOW + TEN)
    assert [one.total for one in events] == [1]
    _, events = merge_all(late, make_report(2, **newer, sli={"core": (3, 4)}), at=NOW + 3 * TEN)
    assert [one.total for one in events] == [1]


def test_next_boot_is_the_current_one_although_clocks_differ_a_little() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (10, 10)}))
    earlier = NOW - timedelta(milliseconds=900)

    row, _ = merge_all(row, make_report(1, boot=NEXT_BOOT, started=-2), at=earlier)

    assert row.boot == NEXT_BOOT


def test_late_report_of_an_unknown_boot_changes_nothing() -> None:
    newer = {"boot": NEXT_BOOT, "started": 15}
    row, _ = merge_all(EMPTY, make_report(1, **newer, sli={"core": (2, 3)}), at=NOW + 60 * TEN)

    late, events = merge_all(row, make_report(5, sli={"core": (14, 15)}), at=NOW + TEN)

    assert (late, events) == (row, [])


def test_two_processes_of_one_name_count_nothing_twice() -> None:
    """Alternate between the older process and the newer one, each silent meanwhile."""
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (0, 0)}))
    newer = {"boot": NEXT_BOOT, "started": 1}
    row, events = merge_all(row, make_report(1, **newer, sli={"core": (60, 60)}), at=NOW + TEN)
    assert [one.total for one in events] == [60]

    row, _ = merge_all(row, make_report(2, sli={"core": (0, 0)}), at=NOW + 5 * TEN)
    assert row.boot == BOOT
    row, events = merge_all(row, make_report(2, **newer, sli={"core": (61, 62)}), at=NOW + 6 * TEN)

    assert row.boot == NEXT_BOOT
    assert events == [SloEvents("core", "core/a1", NOW + TEN, NOW + 6 * TEN, 1, 2)]


def test_a_process_of_the_same_name_that_says_no_start_changes_nothing_of_that() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (60, 60)}))
    for seq in (2, 3, 4):
        row, events = merge_all(
            row, make_report(seq, boot=NEXT_BOOT, started=None, sli={"core": (0, 0)})
        )
        assert events == []
        row, events = merge_all(row, make_report(seq, sli={"core": (60, 60)}), at=NOW + TEN)
        assert (row.boot, events) == (BOOT, [])


def test_a_boot_that_was_there_before_the_last_report_begins_with_its_next() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (1, 1)}))

    row, events = merge_all(row, make_report(1, boot=NEXT_BOOT, started=-5, sli={"core": (60, 60)}))
    assert events == []

    _, events = merge_all(row, make_report(2, boot=NEXT_BOOT, started=-5, sli={"core": (61, 61)}))
    assert [one.total for one in events] == [1]


def test_only_the_last_boots_are_kept_and_a_forgotten_one_adds_nothing_at_first() -> None:
    row = EMPTY
    boots = [UUID(int=number) for number in range(1, 9)]
    for number, boot in enumerate(boots):
        first = make_report(1, boot=boot, started=number, sli={"core": (7, 7)})
        row, _ = merge_all(row, first, at=NOW + number * TEN)

    assert list(row.reported["boots"]) == [str(boot) for boot in boots[-4:-1]]
    later = NOW + timedelta(hours=3)
    _, events = merge_all(
        row, make_report(2, boot=boots[0], started=0, sli={"core": (7, 7)}), at=later
    )
    assert events == []


FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(("started", "sent"), [(FIRST, LAST), (FIRST, NOW), (LAST, FIRST)])
@pytest.mark.parametrize("before", [EMPTY, replace(EMPTY, reported_at=NOW)])
def test_clocks_may_say_anything(started: datetime, sent: datetime, before: InstanceRow) -> None:
    report = replace(make_report(1), started_at=started, sent_at=sent)

    began_at = boots.find_start(before, report, NOW)

    assert began_at is None or began_at == FIRST == started < sent == NOW


@pytest.mark.parametrize("ahead", [0, 60, 540, -540])
def test_a_clock_that_is_ahead_makes_no_span_shorter_than_it_was(ahead: int) -> None:
    """The process began ten minutes ago, and reports for the first time."""
    first = make_report(1, started=ahead - 600, sent=ahead, sli={"core": (500, 500)})

    _, (events,) = merge_all(EMPTY, first)

    assert events.began_at == NOW - timedelta(seconds=max(600, 600 - ahead))


def test_without_the_time_it_was_sent_a_first_report_counts_nothing() -> None:
    row, events = merge_all(EMPTY, make_report(1, sent=None, sli={"core": (500, 500)}))
    assert events == []

    _, events = merge_all(row, make_report(2, sent=None, sli={"core": (501, 501)}), at=NOW + TEN)
    assert [one.total for one in events] == [1]


turns = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 60)), max_size=60)


@given(turns)
def test_however_processes_of_one_name_take_turns_no_event_is_counted_twice(
    turns: list[tuple[int, int, int]],
) -> None:
    """Five processes, two of them without a start time; some reports are lost."""
    row, now, seqs, counted = EMPTY, NOW, [0] * 5, [0] * 5
    for who, lost, passed in turns:
        now += timedelta(seconds=passed)
        seqs[who] += 1 + lost
        one = make_report(
            seqs[who],
            boot=UUID(int=who + 1),
            started=None if who > 2 else who - 10,
            sli={"core": (10 * seqs[who], 10 * seqs[who])},
        )
        after, _ = merge_report(row, one, now, EPOCH)
        counted[who] += sum(
            events.total for events in report_merge.list_new_events(row, after, one)
        )
        assert counted[who] <= 10 * seqs[who]
        row = after
