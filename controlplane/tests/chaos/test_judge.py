"""The judge: each kind of lie is found, and the truth passes."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from controlplane.tests.chaos import judge
from controlplane.tests.chaos.judge import Decision, Operation, Resource, Snapshot
from controlplane.tests.chaos.truth import Row, Truth, from_snapshot, read_row

EPOCH = "0b6f"
ENDS = "2026-11-25T12:00:10.000000Z"
ENDS_AT = datetime.fromisoformat(ENDS).timestamp()
SALTS = {1: "aa", 2: "bb"}
KEY = "u1"
BUCKET = 5124
"""The bucket of `KEY` by the salt `aa`: SHA-256 of `aa:u1`, its first 8 bytes, modulo 10,000."""


def picture(version: int, percent: float = 0.0, **more: Any) -> dict[str, Any]:
    return {
        "state": "ramping" if percent else "engaged",
        "episode": 1,
        "reason": "outage",
        "engaged_at": "2026-11-25T12:00:00.000000Z",
        "expires_at": ENDS,
        "on_expiry": "hold",
        "allow_percent": percent,
        "version": version,
        **more,
    }


def row(version: int, action: str = "switch.engaged", **more: Any) -> Row:
    return Row(version, action, "feature:a", f"op-{version}", picture(version, **more))


def released(version: int) -> Row:
    after = {"state": "released", "version": version}
    return Row(version, "switch.released", "feature:a", f"op-{version}", after)


def truth(*rows: Row) -> Truth:
    return Truth(EPOCH, rows, SALTS)


def entry(percent: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"id": "feature:a", "salt": "aa", **picture(0, percent), **more}


def snapshot(version: int, *entries: dict[str, Any], reader: str = "web new") -> Snapshot:
    return Snapshot(reader, 0.0, EPOCH, version, from_snapshot(entries))


def decision(version: int, *, allowed: bool, at: float = 0.0) -> Decision:
    return Decision("web check", at, version, "feature:a", KEY, allowed)


def operation(number: int, status: int | None = 200, **more: Any) -> Operation:
    given = Operation(
        f"op-{number}", "switch.engaged", "feature:a", status, number, 0.0, 1.0, attempts=1
    )
    return replace(given, **more)


THROUGH = (row(1), row(2, percent=25.0), released(3))


@pytest.mark.parametrize(
    "document",
    [
        snapshot(0),
        snapshot(1, entry()),
        snapshot(2, entry(25)),
        snapshot(3),
    ],
)
def test_snapshot_of_its_version_passes(document: Snapshot) -> None:
    assert judge.compare_snapshots(truth(*THROUGH), [document]) == []


@pytest.mark.parametrize(
    "document",
    [
        snapshot(0, entry()),
        snapshot(1),
        snapshot(1, entry(25)),
        snapshot(2, entry(100)),
        snapshot(2, entry(25, salt="bb")),
        snapshot(1, entry(expires_at=None)),
        snapshot(1, entry(), entry(id="feature:b")),
        snapshot(3, entry()),
        snapshot(4),
        replace(snapshot(3), epoch="other"),
    ],
)
def test_snapshot_of_anything_else_is_a_problem(document: Snapshot) -> None:
    assert len(judge.compare_snapshots(truth(*THROUGH), [document])) == 1


@pytest.mark.parametrize(
    ("percent", "more", "at", "possible"),
    [
        (0.0, {}, ENDS_AT + 999, {False}),
        (0.0, {"on_expiry": "release"}, ENDS_AT + 3.9, {False}),
        (0.0, {"on_expiry": "release"}, ENDS_AT + 4.1, {True, False}),
        (0.0, {"on_expiry": "release", "expires_at": None}, ENDS_AT + 999, {False}),
        (BUCKET / 100, {}, 0.0, {False}),
        ((BUCKET + 1) / 100, {}, 0.0, {True}),
        (100.0, {"on_expiry": "release"}, ENDS_AT + 999, {True}),
    ],
)
def test_decision_follows_from_the_state_at_its_version(
    percent: float, more: dict[str, Any], at: float, possible: set[bool]
) -> None:
    found = truth(row(1, percent=percent, **more))

    for allowed in (True, False):
        problems = judge.compare_decisions(found, [decision(1, allowed=allowed, at=at)])
        assert bool(problems) == (allowed not in possible)


def test_decision_about_a_released_switch_is_to_allow() -> None:
    found = truth(*THROUGH)

    assert judge.compare_decisions(found, [decision(3, allowed=True)]) == []
    assert len(judge.compare_decisions(found, [decision(3, allowed=False)])) == 1
    assert len(judge.compare_decisions(found, [decision(4, allowed=True)])) == 1


@pytest.mark.parametrize(
    ("version", "document", "problems"),
    [
        (0, ("released", 100.0, None), 0),
        (1, ("engaged", 0.0, ENDS), 0),
        (2, ("ramping", 25.0, ENDS), 0),
        (3, ("released", 100.0, None), 0),
        (1, ("released", 100.0, None), 1),
        (1, ("engaged", 0.0, None), 1),
        (2, ("ramping", 5.0, ENDS), 1),
        (3, ("engaged", 0.0, ENDS), 1),
        (4, ("released", 100.0, None), 1),
    ],
)
def test_resource_that_is_not_the_switch_at_its_version_is_a_problem(
    version: int, document: tuple[str, float, str | None], problems: int
) -> None:
    resource = Resource("web list feature:a", 0.0, version, "feature:a", *document)

    assert len(judge.compare_resources(truth(*THROUGH), [resource])) == problems


def test_trail_with_a_missing_version_is_a_problem() -> None:
    assert truth(*THROUGH).problems == []
    assert truth(row(1), released(3)).problems == ["version 2 is missing in the audit trail"]


def test_trail_that_contradicts_itself_is_a_problem() -> None:
    overdue = Row(9, "switch.overdue", "feature:a", "", picture(1))
    other = Row(9, "switch.overdue", "feature:a", "", picture(1, on_expiry="release"))

    assert truth(row(1), overdue).problems == []
    assert len(truth(row(1), other).problems) == 1


def test_row_about_something_else_has_no_version() -> None:
    assert read_row(1, "job.paused", "job:1", "", "null").version is None
    assert read_row(1, "policy.changed", "a->b", "", '{"version": 3}').version is None


def test_lower_version_than_the_reader_had_is_a_step_back() -> None:
    ahead, behind = snapshot(2, entry(25)), snapshot(1, entry())

    assert judge.steps_back([behind, ahead, ahead]) == []
    assert judge.steps_back([ahead, replace(behind, reader="plane new")]) == []
    assert len(judge.steps_back([ahead, behind])) == 1


@pytest.mark.parametrize(
    ("tried", "rows"),
    [
        (operation(1), [row(1)]),
        (operation(1, 202, version=None), [row(1)]),
        (operation(1, 409, version=None), []),
        (operation(1, None, version=None), []),
        (operation(1, None, version=None), [row(1)]),
    ],
)
def test_operation_made_as_it_was_answered_passes(tried: Operation, rows: list[Row]) -> None:
    assert judge.compare_operations([tried], rows) == []


@pytest.mark.parametrize(
    ("tried", "rows"),
    [
        (operation(1), []),
        (operation(1), [row(1), replace(row(2), request_id="op-1")]),
        (operation(1, version=2), [row(1)]),
        (operation(1, switch="feature:b"), [row(1)]),
        (operation(1, 409, version=None), [row(1)]),
        (operation(1, None), [row(1), replace(row(2), request_id="op-1")]),
    ],
)
def test_operation_lost_doubled_or_refused_and_made_is_a_problem(
    tried: Operation, rows: list[Row]
) -> None:
    assert len(judge.compare_operations([tried], rows)) == 1


@pytest.mark.parametrize(
    ("shares", "problems"),
    [
        ([0.0, 5.0, 25.0, 100.0], 0),
        ([0.0, 5.0, 0.0, 5.0], 0),
        ([0.0, 25.0], 1),
        ([0.0, 5.0, 100.0], 1),
        ([0.0, 5.0, 25.0, 5.0], 1),
        ([5.0], 1),
    ],
)
def test_ramp_share_out_of_its_plan_is_a_problem(shares: list[float], problems: int) -> None:
    rows = [row(version, percent=share) for version, share in enumerate(shares, 1)]

    assert len(judge.wrong_ramp_steps(truth(*rows))) == problems


@pytest.mark.parametrize(
    ("arrived", "problems", "repeated"),
    [
        ([1, 2, 3], 0, 0),
        ([3, 1, 2], 0, 0),
        ([1, 2, 1, 3], 0, 1),
        ([1, 3], 1, 0),
        ([2, 1, 3], 1, 0),
    ],
)
def test_message_missing_or_out_of_order_is_a_problem(
    arrived: list[int], problems: int, repeated: int
) -> None:
    sent = [(1, "episode:1"), (2, "episode:1"), (3, "episode:2")]

    found, again = judge.compare_messages(sent, arrived)

    assert (len(found), again) == (problems, repeated)


def test_operation_beside_a_window_is_undisturbed() -> None:
    asked = operation(1, began=10.0, ended=11.0)

    assert judge.undisturbed([asked], [(5, 10), (11, 12)]) == [asked]
    for window in ((10.5, 10.6), (9, 10.1), (10.9, 12), (5, 15)):
        assert judge.undisturbed([asked], [window]) == []


@pytest.mark.parametrize(("share", "expected"), [(0.5, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_percentile(share: float, expected: float) -> None:
    assert judge.percentile([4.0, 1.0, 3.0, 2.0], share) == expected
    assert judge.percentile([], share) == 0.0
