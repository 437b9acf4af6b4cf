"""Events of SLOs in reports are counted once, and never into a wrong time span."""

from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.dataplane.ingest import report_merge
from controlplane.dataplane.ingest.instance_rows import InstanceReport, InstanceRow, SloEvents
from controlplane.dataplane.ingest.report_merge import MAX_SLOS, merge_report, parse_report
from controlplane.dataplane.tests.served import EPOCH
from controlplane.dataplane.tests.test_reports import (
    BOOT,
    EMPTY,
    NEXT_BOOT,
    NOW,
    WHOLE,
    make_report,
    wrong,
)

STARTED = NOW - timedelta(minutes=5)
TEN = timedelta(seconds=10)


def merge_all(
    row: InstanceRow, *in_turn: InstanceReport, at: datetime = NOW
) -> tuple[InstanceRow, list[SloEvents]]:
    """Return the row after reports ten seconds apart, and what the last one adds."""
    events: list[SloEvents] = []
    for number, report in enumerate(in_turn):
        after, _ = merge_report(row, report, at + number * TEN, EPOCH)
        events = report_merge.list_new_events(row, after, report)
        row = after
    return row, events


def test_what_a_report_counted_is_read() -> None:
    assert parse_report(WHOLE).sli == {"core-availability": (1000, 1001)}
    assert parse_report({**WHOLE, "sli": None}).sli == {}


@pytest.mark.parametrize(
    ("path", "named", "values"),
    [
        ("sli.0.slo", "sli[0].slo", ["", 7, None, "x" * 201, "a\x00"]),
        ("sli.0.good", "sli[0].good", [-1, 0.5, None, True, 1002]),
        ("sli.0.total", "sli[0].total", [-1, "1001", 2**63]),
        ("sli.0.total", "sli[0].good", [999]),
    ],
)
def test_a_wrong_count_names_its_field(path: str, named: str, values: list[object]) -> None:
    for value in values:
        assert set(wrong(path, value)) == {named}, value


def test_as_many_good_events_as_there_are_is_fine() -> None:
    document = deepcopy(WHOLE)
    document["sli"] = [
        {"slo": "정산 ✓", "good": 7, "total": 7},
        {"slo": "b", "good": 0, "total": 0},
    ]

    assert parse_report(document).sli == {"정산 ✓": (7, 7), "b": (0, 0)}


def test_an_slo_named_twice_is_named() -> None:
    assert set(wrong("sli", WHOLE["sli"] * 2)) == {"sli[1].slo"}


def test_the_first_report_of_a_boot_counts_since_it_started() -> None:
    row, events = merge_all(EMPTY, make_report(1, sli={"core": (98, 100)}))

    assert events == [SloEvents("core", "core/a1", STARTED, NOW, 98, 100)]
    assert row.reported["sli"] == {"core": [98, 100]}


def test_a_boot_that_does_not_say_when_it_started_counts_from_its_first_report_on() -> None:
    first = make_report(1, started=None, sli={"core": (98, 100)})
    row, events = merge_all(EMPTY, first)
    assert events == []

    _, events = merge_all(row, make_report(2, started=None, sli={"core": (99, 103)}), at=NOW + TEN)
    assert events == [SloEvents("core", "core/a1", NOW, NOW + TEN, 1, 3)]


def test_growth_began_when_the_report_before_was_taken_in() -> None:
    _, events = merge_all(
        EMPTY,
        make_report(1, sli={"core": (98, 100), "idle": (5, 5)}),
        make_report(2, sli={"core": (98, 101), "idle": (5, 5), "new": (1, 2)}),
    )

    assert events == [
        SloEvents("core", "core/a1", NOW, NOW + TEN, 0, 1),
        SloEvents("new", "core/a1", NOW, NOW + TEN, 1, 2),
    ]


def test_after_a_lost_report_the_span_is_longer_and_nothing_is_missing() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (100, 100)}))

    _, events = merge_all(row, make_report(3, sli={"core": (130, 131)}), at=NOW + 2 * TEN)

    assert events == [SloEvents("core", "core/a1", NOW, NOW + 2 * TEN, 30, 31)]


def test_repeated_and_late_reports_add_nothing() -> None:
    row, _ = merge_all(
        EMPTY, make_report(1, sli={"core": (10, 10)}), make_report(3, sli={"core": (30, 30)})
    )

    for seq in (3, 2, 1):
        after, events = merge_all(row, make_report(seq, sli={"core": (99, 99)}))
        assert events == []
        assert after.reported["sli"] == {"core": [30, 30]}


def test_a_new_boot_counts_from_nothing() -> None:
    row, _ = merge_all(EMPTY, make_report(9, sli={"core": (1000, 1000)}))

    row, events = merge_all(
        row, make_report(1, boot=NEXT_BOOT, started=3, sli={"core": (4, 5)}), at=NOW + TEN
    )

    began = NOW + timedelta(seconds=3)
    assert events == [SloEvents("core", "core/a1", began, NOW + TEN, 4, 5)]
    assert row.reported["sli"] == {"core": [4, 5]}


def test_an_older_boot_adds_nothing_while_another_reports() -> None:
    row, _ = merge_all(EMPTY, make_report(1, boot=NEXT_BOOT, started=-5, sli={"core": (4, 5)}))

    after, events = merge_all(row, make_report(99, sli={"core": (1000, 1000)}), at=NOW + TEN)

    assert (replace(after, contested_at=None), events) == (row, [])


def test_an_older_boot_that_comes_back_adds_what_it_counted_since() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (1000, 1000)}))
    row, _ = merge_all(row, make_report(1, boot=NEXT_BOOT, started=-5, sli={"core": (4, 5)}))

    back = NOW + timedelta(minutes=1)
    row, events = merge_all(row, make_report(2, sli={"core": (1050, 1050)}), at=back)
    assert row.boot == BOOT
    assert events == [SloEvents("core", "core/a1", NOW, back, 50, 50)]

    _, events = merge_all(row, make_report(3, sli={"core": (1051, 1052)}), at=back + TEN)
    assert events == [SloEvents("core", "core/a1", back, back + TEN, 1, 2)]


def test_a_start_that_is_still_to_come_is_no_start_to_count_from() -> None:
    row, events = merge_all(EMPTY, make_report(1, started=+60, sli={"core": (1000, 1000)}))
    assert events == []

    _, events = merge_all(
        row, make_report(2, started=+60, sli={"core": (1001, 1001)}), at=NOW + TEN
    )
    assert events == [SloEvents("core", "core/a1", NOW, NOW + TEN, 1, 1)]


@pytest.mark.parametrize("counts", [(90, 90), (100, 99), (90, 110), (60, 101)])
def test_where_good_bad_or_all_went_down_nothing_is_counted(counts: tuple[int, int]) -> None:
    """The case (60, 101) is valid by itself, but takes back forty good events."""
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (95, 100)}))

    row, events = merge_all(row, make_report(2, sli={"core": counts}), at=NOW + TEN)
    assert events == []

    more = (counts[0] + 1, max(counts) + 2)
    _, events = merge_all(row, make_report(3, sli={"core": more}), at=NOW + 2 * TEN)
    assert [(one.good, one.total) for one in events] == [(1, more[1] - counts[1])]


def test_an_slo_missing_from_one_report_is_not_counted_twice_by_the_next() -> None:
    _, events = merge_all(
        EMPTY,
        make_report(1, sli={"core": (10, 10)}),
        make_report(2),
        make_report(3, sli={"core": (11, 12)}),
    )

    assert [(one.good, one.total) for one in events] == [(1, 2)]


def test_a_boot_from_before_counts_were_kept_begins_with_what_it_says_next() -> None:
    row, _ = merge_all(EMPTY, make_report(1))
    row = replace(row, reported={"checks": {}, "seqs": 1})

    row, events = merge_all(row, make_report(2, sli={"core": (10**6, 10**6)}), at=NOW + TEN)
    assert events == []

    _, events = merge_all(
        row, make_report(3, sli={"core": (10**6 + 1, 10**6 + 1)}), at=NOW + 2 * TEN
    )
    assert [one.total for one in events] == [1]


def test_a_report_of_a_process_whose_clock_is_behind_ours_still_ends_after_it_began() -> None:
    row, _ = merge_all(EMPTY, make_report(1, sli={"core": (10, 10)}))

    _, events = merge_all(row, make_report(2, sli={"core": (11, 11)}), at=NOW - TEN)

    assert [(one.began_at, one.ended_at) for one in events] == [(NOW - TEN, NOW - TEN)]


def test_ever_new_slos_are_kept_within_bounds_and_none_is_counted_twice() -> None:
    def some(first: int, counted: int) -> dict[str, tuple[int, int]]:
        return {f"slo-{n}": (counted, counted) for n in range(first, first + 150)}

    row, first = merge_all(EMPTY, make_report(1, sli=some(0, 1)))
    row, second = merge_all(row, make_report(2, sli=some(100, 2)))
    row, third = merge_all(row, make_report(3, sli=some(100, 3)))

    assert len(row.reported["sli"]) == MAX_SLOS
    assert [len(first), len(second), len(third)] == [150, 100, 100]
    totals: dict[str, int] = {}
    for one in [*first, *second, *third]:
        totals[one.slo] = totals.get(one.slo, 0) + one.total
    assert totals == {slo: numbers[1] for slo, numbers in row.reported["sli"].items()}


def test_a_report_without_counts_costs_its_row_next_to_nothing() -> None:
    row, events = merge_all(EMPTY, make_report(1, checks={"segment:a": (1, 0)}))

    assert (row.reported["sli"], events) == ({}, [])
    assert make_report(1, checks={"segment:a": (1, 0)}, sli={"core": (1, 1)}).size == 2


seqs = st.lists(st.integers(1, 40), min_size=1, max_size=40)


@given(seqs, seqs, st.lists(st.integers(0, 40), min_size=80, max_size=80))
def test_in_any_order_with_repeats_and_a_restart_every_event_is_counted_once(
    seqs: list[int], after_restart: list[int], seconds: list[int]
) -> None:
    """Each report of a boot has counted ten events more, nine of them good.

    The second boot starts before the first is silent: its events until its first report are left
    out.
    """
    sent = [(BOOT, -300, seq) for seq in seqs] + [(NEXT_BOOT, -5, seq) for seq in after_restart]
    row, now, counted = EMPTY, NOW, {BOOT: [0, 0], NEXT_BOOT: [0, 0]}
    for (boot, started, seq), passed in zip(sent, seconds, strict=False):
        now += timedelta(seconds=passed)
        one = make_report(seq, boot=boot, started=started, sli={"core": (9 * seq, 10 * seq)})
        after, _ = merge_report(row, one, now, EPOCH)
        for events in report_merge.list_new_events(row, after, one):
            assert events.began_at <= events.ended_at == now
            assert row.boot != boot or events.began_at == row.reported_at
            counted[boot][0] += events.good
            counted[boot][1] += events.total
        row = after

    assert counted[BOOT] == [9 * max(seqs), 10 * max(seqs)]
    since_heard = max(after_restart) - after_restart[0]
    assert counted[NEXT_BOOT] == [9 * since_heard, 10 * since_heard]
