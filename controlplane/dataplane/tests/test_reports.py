"""Reports: each wrong field is named, and counts are right in any order of arrival."""

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from controlplane.dataplane.ingest import report_merge
from controlplane.dataplane.ingest.instance_rows import InstanceReport, InstanceRow
from controlplane.dataplane.ingest.report_fields import COUNTERS
from controlplane.dataplane.ingest.report_merge import merge_report, parse_report
from controlplane.dataplane.tests.served import EPOCH

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOOT = UUID("5b8f2f0e-0000-4000-8000-000000000001")
NEXT_BOOT = UUID("5b8f2f0e-0000-4000-8000-000000000002")
EMPTY = InstanceRow("core/a1", "core")
WHOLE: dict[str, Any] = {
    "service": "core",
    "instance": "core-7f9c",
    "boot": str(BOOT),
    "started_at": "2026-11-21T02:11:00.123456+09:00",
    "seq": 42,
    "sent_at": "2026-11-21T02:12:00Z",
    "applied_version": 1842,
    "config_version": 7,
    "checks": [{"switch": "segment:finance", "allowed": 10, "blocked": 2}],
    "breakers": [
        {
            "dependency": "core->oracle",
            "state": "open",
            "mode": "normal",
            "since": "2026-11-21T02:11:00Z",
            "failure_rate": 0.6,
            "slow_rate": 0.0,
            "calls": 20,
            "counters": {"success": 0, "failure": 12},
            "transitions": [
                {
                    "n": 1,
                    "from": "closed",
                    "to": "open",
                    "at": "2026-11-21T02:11:00Z",
                    "cause": "failure_rate 0.60 >= 0.50",
                }
            ],
        }
    ],
    "bulkheads": [
        {"name": "llm", "in_flight": 3, "limit": 50, "queued": 0, "queue_limit": 10, "rejected": 0}
    ],
    "sli": [{"slo": "core-availability", "good": 1000, "total": 1001}],
}


def wrong(path: str, value: object) -> dict[str, list[str]]:
    """Return the errors of the whole report with one value, at `a.0.b`, replaced or removed."""
    document = deepcopy(WHOLE)
    *steps, last = path.split(".")
    place: Any = document
    for step in steps:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    with pytest.raises(InvalidInput) as caught:
        parse_report(document)
    return caught.value.errors


def test_the_whole_report_is_read() -> None:
    report = parse_report(WHOLE)

    assert report.id == "core/core-7f9c"
    assert (report.boot, report.seq) == (BOOT, 42)
    assert report.started_at == datetime(2026, 11, 20, 17, 11, 0, 123456, tzinfo=UTC)
    assert (report.applied_version, report.config_version) == (1842, 7)
    assert report.checks == {"segment:finance": (10, 2)}


def test_the_smallest_report_is_read() -> None:
    needed = ("service", "instance", "boot", "seq")
    least = {**{name: WHOLE[name] for name in needed}, "applied_version": None, "checks": None}

    report = parse_report(least)

    assert (report.applied_version, report.config_version, report.checks) == (None, None, {})


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("check", "check"),
        ("checks.0.denied", "checks[0].denied"),
        ("breakers.0.status", "breakers[0].status"),
        ("breakers.0.counters.hedged", "breakers[0].counters.hedged"),
        ("breakers.0.transitions.0.reason", "breakers[0].transitions[0].reason"),
        ("bulkheads.0.waiting", "bulkheads[0].waiting"),
        ("sli.0.bad", "sli[0].bad"),
    ],
)
def test_an_unknown_field_is_named(place: str, path: str) -> None:
    errors = wrong(place, 1)

    assert list(errors) == [path]
    assert "Unknown field" in errors[path][0]


def test_many_unknown_fields_name_a_few() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_report({**WHOLE, **{f"field-{number}" * 20: 1 for number in range(1000)}})

    assert len(caught.value.errors) <= 20
    assert len(str(caught.value.errors)) < 10_000


def test_an_empty_object_names_each_field_it_lacks() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_report({})

    assert set(caught.value.errors) == {"service", "instance", "boot", "seq"}


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "x" * 121, "\x00", "a\n", 7, [], {}, True])
@pytest.mark.parametrize("field", ["service", "instance"])
def test_a_name_that_is_none_is_named(field: str, name: object) -> None:
    assert set(wrong(field, name)) == {field}


def test_names_in_any_script_are_names() -> None:
    assert parse_report({**WHOLE, "service": "정산", "instance": "é-𝕏"}).id == "정산/é-𝕏"


@pytest.mark.parametrize(
    ("path", "named", "values"),
    [
        ("boot", "boot", ["", "x", 7, [], "5b8f2f0e00004000800000000000000g", None]),
        ("started_at", "started_at", ["", 7, "2026-11-21", "2026-13-21T00:00:00Z", {}]),
        ("started_at", "started_at", ["2026-11-21T02:11:00", "0001-01-01T00:00:00+09:00"]),
        ("seq", "seq", [-1, 1.5, "1", True, 2**63, None, [], 1e300]),
        ("sent_at", "sent_at", ["yesterday", 7]),
        ("applied_version", "applied_version", [-1, "17", 1.0, 2**63, False]),
        ("config_version", "config_version", [-1, "7"]),
        ("checks", "checks", [{}, "x", 7, [{}] * 1001]),
        ("checks.0.switch", "checks[0].switch", ["finance", "segment:", "segment:a b", 7, None]),
        ("checks.0.switch", "checks[0].switch", ["global:x", "segment:" + "x" * 121, "Segment:a"]),
        ("checks.0.allowed", "checks[0].allowed", [-1, 0.5, "1", None, True, 2**53 + 1]),
        ("checks.0.blocked", "checks[0].blocked", [-1, [], None]),
        ("breakers", "breakers", [{}, 7, [{}] * 501]),
        ("breakers.0.dependency", "breakers[0].dependency", ["", 7, None, "x" * 1001]),
        ("breakers.0.dependency", "breakers[0].dependency", ["core", "core->", "Core->oracle"]),
        (
            "breakers.0.dependency",
            "breakers[0].dependency",
            ["a->b->c", "a -> b", "x" * 61 + "->b"],
        ),
        ("breakers.0.state", "breakers[0].state", ["ajar", None, 7, []]),
        ("breakers.0.mode", "breakers[0].mode", ["odd", {}]),
        ("breakers.0.failure_rate", "breakers[0].failure_rate", [-0.1, "0.6", True, 1.01, 60]),
        ("breakers.0.slow_rate", "breakers[0].slow_rate", [-1, 1e300]),
        ("breakers.0.calls", "breakers[0].calls", [-1, 2**53 + 1]),
        ("breakers.0.counters", "breakers[0].counters", [[], "x"]),
        ("breakers.0.counters.failure", "breakers[0].counters.failure", [-1, "x", None, 2**53 + 1]),
        ("breakers.0.transitions", "breakers[0].transitions", ["x", 7]),
        ("breakers.0.transitions.0.n", "breakers[0].transitions[0].n", ["1", None]),
        ("breakers.0.transitions.0.at", "breakers[0].transitions[0].at", ["now", None]),
        ("breakers.0.transitions.0.cause", "breakers[0].transitions[0].cause", [7, []]),
        ("bulkheads", "bulkheads", [[{}] * 201]),
        ("bulkheads.0.name", "bulkheads[0].name", ["", "a\x00b", "x" * 201]),
        ("bulkheads.0.in_flight", "bulkheads[0].in_flight", [-1, None]),
        ("sli.0.total", "sli[0].total", ["1001", None]),
    ],
)
def test_a_wrong_value_names_its_field(path: str, named: str, values: list[object]) -> None:
    for value in values:
        assert set(wrong(path, value)) == {named}, value


def test_an_element_that_is_no_object_is_named() -> None:
    assert set(wrong("sli", [WHOLE["sli"][0], 7])) == {"sli[1]"}


def test_a_switch_named_twice_is_named() -> None:
    assert set(wrong("checks", WHOLE["checks"] * 2)) == {"checks[1].switch"}


@pytest.mark.parametrize(("field", "key"), [("breakers", "dependency"), ("bulkheads", "name")])
def test_a_breaker_or_bulkhead_named_twice_is_named(field: str, key: str) -> None:
    assert set(wrong(field, WHOLE[field] * 2)) == {f"{field}[1].{key}"}


def test_counters_that_are_left_out_are_0() -> None:
    document = deepcopy(WHOLE)
    del document["breakers"][0]["counters"]["success"]
    document["breakers"][0]["failure_rate"] = None

    (found,) = parse_report(document).breakers.values()

    assert set(found["counters"]) == set(COUNTERS)
    assert (found["counters"]["failure"], found["failure_rate"]) == (12, None)


def test_a_body_full_of_errors_names_a_few() -> None:
    errors = wrong("checks", [{"switch": 7, "allowed": "x", "blocked": []}] * 1000)

    assert len(errors) == 20


@given(
    st.dictionaries(
        st.sampled_from(sorted(WHOLE)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text() | st.sampled_from(["switch", "state", "n"]), inner)
            ),
            max_leaves=8,
        ),
    )
)
def test_whatever_is_sent_is_read_or_refused_with_the_field_named(given_: dict[str, Any]) -> None:
    try:
        report = parse_report({**WHOLE, **given_})
    except InvalidInput as error:
        assert error.errors
    else:
        merge_report(EMPTY, report, NOW, EPOCH)


def make_report(
    seq: int,
    *,
    boot: UUID = BOOT,
    started: int | None = -300,
    sent: int | None = 0,
    **more: Any,
) -> InstanceReport:
    """Return a report of a process that started and sent it so many seconds from NOW.

    Both by its own clock, and None if the report does not say.
    """
    times = [None if at is None else NOW + timedelta(seconds=at) for at in (started, sent)]
    return InstanceReport("core", "a1", boot, seq, *times, **more)


def merge_reports(row: InstanceRow, *in_turn: InstanceReport) -> InstanceRow:
    for number, report in enumerate(in_turn):
        row, _ = merge_report(row, report, NOW + timedelta(seconds=number), EPOCH)
    return row


def test_a_repeated_seq_is_a_duplicate_and_changes_nothing() -> None:
    row = merge_reports(EMPTY, make_report(42, checks={"segment:a": (10, 2)}))

    again, duplicate = merge_report(
        row, make_report(42, checks={"segment:a": (99, 99)}), NOW, EPOCH
    )

    assert duplicate
    assert again is row


def test_an_older_seq_leaves_the_state_alone_and_its_repeat_is_a_duplicate() -> None:
    row = merge_reports(EMPTY, make_report(40, checks={"segment:a": (10, 2)}, applied_version=17))
    row = merge_reports(row, make_report(42, checks={"segment:a": (30, 2)}, applied_version=18))

    late, first = merge_report(
        row, make_report(41, checks={"segment:a": (20, 2)}, applied_version=17), NOW, EPOCH
    )
    _, second = merge_report(late, make_report(41), NOW, EPOCH)
    _, oldest = merge_report(late, make_report(40), NOW, EPOCH)

    assert (first, second, oldest) == (False, True, True)
    assert late.checks == row.checks
    assert (late.seq, late.applied_version, late.heard_at) == (42, 18, row.heard_at)


def test_a_new_boot_counts_from_nothing_and_has_applied_nothing_yet() -> None:
    row = merge_reports(EMPTY, make_report(42, checks={"segment:a": (10, 2)}, applied_version=17))

    row = merge_reports(
        row, make_report(1, boot=NEXT_BOOT, started=-5, checks={"segment:a": (3, 0)})
    )

    assert (row.boot, row.seq) == (NEXT_BOOT, 1)
    assert (row.checks["segment:a"]["allowed"], row.checks["segment:a"]["blocked"]) == (13, 2)
    assert row.applied_version is None


def test_an_older_boot_leaves_the_state_alone() -> None:
    row = merge_reports(EMPTY, make_report(1, boot=NEXT_BOOT, started=-5, applied_version=18))

    same, duplicate = merge_report(row, make_report(99, applied_version=17), NOW, EPOCH)

    assert same == replace(row, contested_at=NOW)
    assert not duplicate


def test_a_boot_that_does_not_say_when_it_started_follows_the_one_before() -> None:
    row = merge_reports(EMPTY, make_report(9, applied_version=17))

    row = merge_reports(row, make_report(1, boot=NEXT_BOOT, started=None, applied_version=18))

    assert (row.boot, row.seq, row.started_at, row.applied_version) == (NEXT_BOOT, 1, None, 18)


def test_a_boot_with_a_clock_ahead_shuts_out_no_later_one() -> None:
    row = merge_reports(EMPTY, make_report(1, started=+86_400))

    row, _ = merge_report(
        row, make_report(1, boot=NEXT_BOOT, started=10), NOW + timedelta(seconds=20), EPOCH
    )

    assert row.boot == NEXT_BOOT


def test_a_boot_with_a_clock_behind_is_taken_in_once_the_one_before_is_silent() -> None:
    row = merge_reports(EMPTY, make_report(5, started=-60, applied_version=17))
    behind = make_report(1, boot=NEXT_BOOT, started=-3600, applied_version=18)

    early, _ = merge_report(row, behind, NOW + timedelta(seconds=29), EPOCH)
    late, _ = merge_report(row, behind, NOW + timedelta(seconds=30), EPOCH)

    assert replace(early, contested_at=None) == row
    assert (late.boot, late.applied_version) == (NEXT_BOOT, 18)


def test_boots_of_one_name_that_do_not_say_when_they_started_count_no_call_twice() -> None:
    row = EMPTY
    for number in range(10):
        for boot in (BOOT, NEXT_BOOT):
            one = make_report(number, boot=boot, started=None, checks={"segment:a": (1000, 10)})
            row, _ = merge_report(row, one, NOW + timedelta(seconds=number), EPOCH)

    assert (row.checks["segment:a"]["allowed"], row.checks["segment:a"]["now"]) == (0, 0)
    row = merge_reports(
        row, make_report(10, boot=NEXT_BOOT, started=None, checks={"segment:a": (1007, 11)})
    )
    assert (row.checks["segment:a"]["allowed"], row.checks["segment:a"]["blocked"]) == (7, 1)


def test_the_same_version_reported_after_an_epoch_began_is_still_of_the_one_before() -> None:
    begun = UUID(int=7)
    row = merge_reports(EMPTY, make_report(1, applied_version=17))

    row, _ = merge_report(
        row, make_report(2, applied_version=17), NOW + timedelta(seconds=5), begun
    )
    assert (row.applied_epoch, row.applied_version) == (EPOCH, 17)

    next_, _ = merge_report(
        row, make_report(3, applied_version=18), NOW + timedelta(seconds=9), begun
    )
    assert (next_.applied_epoch, next_.applied_version) == (begun, 18)
    again = make_report(1, boot=NEXT_BOOT, started=5, applied_version=17)
    again_row, _ = merge_report(row, again, NOW + timedelta(seconds=9), begun)
    assert (again_row.applied_epoch, again_row.applied_version) == (begun, 17)


def test_what_a_later_poll_said_stands_against_a_report() -> None:
    later = NOW + timedelta(seconds=9)
    row = InstanceRow("core/a1", "core", boot=BOOT, started_at=NOW, seq=1, heard_at=later)
    row = replace(row, applied_epoch=EPOCH, applied_version=19, applied_at=later)

    merged, _ = merge_report(row, make_report(2, applied_version=18), NOW, EPOCH)

    assert (merged.applied_version, merged.heard_at) == (19, later)


def test_a_switch_missing_from_one_report_is_not_counted_twice_by_the_next() -> None:
    row = merge_reports(
        EMPTY,
        make_report(1, checks={"segment:a": (10, 0)}),
        make_report(2),
        make_report(3, checks={"segment:a": (11, 0)}),
    )

    assert row.checks["segment:a"]["allowed"] == 11


def test_counters_that_went_back_add_nothing() -> None:
    row = merge_reports(EMPTY, make_report(1, checks={"segment:a": (10, 5)}))
    row = merge_reports(row, make_report(2, checks={"segment:a": (4, 6)}))

    assert (row.checks["segment:a"]["allowed"], row.checks["segment:a"]["blocked"]) == (10, 6)


def test_ever_new_switches_are_kept_within_bounds() -> None:
    row = EMPTY
    for seq in range(1, 6):
        checks = {f"segment:{seq}-{number}": (1, 0) for number in range(1000)}
        row, _ = merge_report(
            row, make_report(seq, checks=checks), NOW + timedelta(seconds=seq), EPOCH
        )

    assert len(row.checks) == len(row.reported["checks"]) == report_merge.MAX_SWITCHES
    assert all(switch.startswith("segment:5-") for switch in row.checks)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_reports_in_any_order_with_repeats_count_what_the_newest_said(seqs: list[int]) -> None:
    row, taken = EMPTY, set()
    for seq in seqs:
        told_ = make_report(seq, checks={"segment:a": (seq * 7, seq)}, applied_version=seq)
        row, duplicate = merge_report(row, told_, NOW + timedelta(seconds=len(taken)), EPOCH)
        assert duplicate == (seq in taken)
        taken.add(seq)

    newest = max(seqs)
    entry = row.checks["segment:a"]
    assert (entry["allowed"], entry["blocked"]) == (newest * 7, newest)
    assert (row.seq, row.applied_version) == (newest, newest)
