"""Two processes or tokens under one instance's name are recorded; restarts and rotations aren't."""

from datetime import datetime, timedelta

import pytest

from controlplane.accounts.tokens import attention
from controlplane.core.models import Instance
from controlplane.dataplane.ingest.instance_rows import InstanceReport, InstanceRow
from controlplane.dataplane.ingest.report_merge import merge_report
from controlplane.dataplane.tests.breaker_reports import Reporting, at_work
from controlplane.dataplane.tests.served import EPOCH
from controlplane.dataplane.tests.test_reports import EMPTY, NEXT_BOOT, NOW, make_report

__all__ = ["at_work"]
REAL, OTHER = 7, 8
SECOND = timedelta(seconds=1)


def merged(*reports: tuple[float, int, InstanceReport], row: InstanceRow = EMPTY) -> InstanceRow:
    """Return the row after reports: seconds after NOW, the token's id, and the report."""
    for seconds, token_id, report in reports:
        row, _ = merge_report(row, report, NOW + seconds * SECOND, EPOCH, token_id)
    return row


def contested_at(*reports: tuple[float, int, InstanceReport]) -> datetime | None:
    return merged(*reports).contested_at


def later(seq: int) -> InstanceReport:
    """Return a report of another process, which started after the usual one."""
    return make_report(seq, boot=NEXT_BOOT, started=1)


def test_process_that_goes_on_after_another_took_its_name_is_contested() -> None:
    row = merged((0, REAL, make_report(1)), (1, REAL, later(1)), (12, REAL, make_report(2)))

    assert row.boot == NEXT_BOOT
    assert row.contested_at == NOW + 12 * SECOND


def test_process_without_a_start_that_takes_turns_is_contested() -> None:
    other = make_report(1, boot=NEXT_BOOT, started=None)

    assert contested_at((0, REAL, make_report(1)), (1, REAL, other), (12, REAL, make_report(2)))


@pytest.mark.parametrize("seq", [1, 9**15], ids=["ignored", "taken in"])
def test_another_token_that_takes_turns_is_contested(seq: int) -> None:
    assert contested_at(
        (0, REAL, make_report(1)), (1, OTHER, make_report(seq + 1)), (2, REAL, make_report(3))
    )


@pytest.mark.parametrize(
    "reports",
    [
        [(0, REAL, make_report(1)), (1, REAL, later(1)), (11, REAL, later(2))],
        [(0, REAL, make_report(1)), (1, REAL, later(1)), (5, REAL, make_report(2))],
        [(0, REAL, make_report(1)), (25, OTHER, later(1)), (12, REAL, make_report(5))],
        [
            (0, REAL, make_report(2)),
            (1, REAL, later(1)),
            (12, REAL, make_report(2)),
            (13, REAL, make_report(1)),
        ],
        [(0, REAL, make_report(1)), (1, OTHER, make_report(2)), (2, OTHER, make_report(3))],
        [(0, REAL, make_report(1)), (1, OTHER, later(1)), (12, OTHER, later(2))],
        [(0, REAL, make_report(1)), (1, OTHER, later(1)), (60, REAL, make_report(2))],
        [(0, REAL, make_report(1)), (1, REAL, make_report(1)), (2, REAL, make_report(2))],
    ],
    ids=[
        "restart",
        "last report of a process that ends",
        "report that a relay delivers late",
        "repeats of a process that ended",
        "rotated token",
        "restart with a rotated token",
        "successor that is silent",
        "repeat",
    ],
)
def test_what_happens_in_operation_is_no_contest(
    reports: list[tuple[float, int, InstanceReport]],
) -> None:
    assert contested_at(*reports) is None


def test_token_that_was_changed_back_is_no_contest() -> None:
    changed = [(10 * tick, OTHER, make_report(tick + 2)) for tick in range(1, 40)]

    assert contested_at((0, REAL, make_report(1)), *changed, (400, REAL, make_report(50))) is None


def test_contest_is_noted_once_a_minute() -> None:
    turns = [(12 + tick, REAL, make_report(tick + 2)) for tick in range(58)]
    row = merged((0, REAL, make_report(1)), (1, REAL, later(1)))

    noted = set()
    for seconds, token_id, report in turns:
        row = merged((seconds - 0.5, REAL, later(seconds)), (seconds, token_id, report), row=row)
        noted.add(row.contested_at)

    assert noted == {NOW + 12 * SECOND}


@pytest.mark.usefixtures("published")
def test_contest_is_in_the_log_and_on_needs_attention(
    at_work: Reporting, caplog: pytest.LogCaptureFixture
) -> None:
    def say(report: InstanceReport, token_id: int, after: float) -> None:
        at_work.report(report, after, token_id)

    say(make_report(1), REAL, 0)
    say(later(1), OTHER, 1)
    say(make_report(2), REAL, 12)
    say(make_report(3), REAL, 1)

    row = Instance.objects.get()
    assert (row.boot, row.contested_at) == (NEXT_BOOT, at_work.clock.now - SECOND)
    (waiting,) = attention.list_contested_instances(at_work.clock.now)
    assert (waiting.kind, waiting.severity) == ("instance_contested", "warning")
    assert waiting.title.startswith("core/a1: ")
    assert attention.list_contested_instances(at_work.clock.now + timedelta(minutes=16)) == []
    assert caplog.text.count("instance.contested") == 1
