"""An instance has stopped with its final report, and counts again after a later poll or report."""

import asyncio
import json
from datetime import timedelta
from uuid import UUID

import pytest

from controlplane.core.instances import queries
from controlplane.core.instances.queries import Head
from controlplane.dataplane.application import Application
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger
from controlplane.dataplane.ingest.instance_rows import InstanceReport, InstanceRow
from controlplane.dataplane.ingest.report_merge import merge_report
from controlplane.dataplane.serving import held_requests
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.ledgers import (
    A_BATCH,
    BOOT,
    NOW,
    Clock,
    acks,
    hear,
    report,
    row,
    writing,
)
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.served import BEARER, EPOCH, ETAG, REPORTER, ask, plane

NEXT_BOOT = UUID("5b8f2f0e-0000-4000-8000-000000000002")
EMPTY = InstanceRow("core/a1", "core")
A_SECOND = timedelta(seconds=1)


def merge_each(*reports: InstanceReport) -> InstanceRow:
    """Return the row after reports that arrive one second after another."""
    found = EMPTY
    for number, one in enumerate(reports):
        found, _ = merge_report(found, one, NOW + number * A_SECOND, EPOCH)
    return found


def is_stopped(found: InstanceRow) -> bool:
    assert found.heard_at is not None
    return found.stopped_at is not None and found.stopped_at >= found.heard_at


@pytest.mark.parametrize(
    ("reports", "stopped"),
    [
        ([report(1)], False),
        ([report(1), report(2, is_final=True)], True),
        ([report(1, is_final=True)], True),
        ([report(1, is_final=True), report(2, is_final=True)], True),
        ([report(2, is_final=True), report(1)], True),
        ([report(2, is_final=True), report(2, is_final=True)], True),
        ([report(1, is_final=True), report(1, boot=NEXT_BOOT, started_at=NOW)], False),
        ([report(1), report(1, boot=NEXT_BOOT, started_at=NOW), report(2, is_final=True)], False),
    ],
    ids=[
        "runs",
        "final report",
        "only report",
        "two final reports",
        "earlier report arrives last",
        "final report arrives twice",
        "restart",
        "final report arrives after the restart",
    ],
)
def test_final_report_of_the_current_boot_stops_the_instance(
    reports: list[InstanceReport], stopped: bool
) -> None:
    assert is_stopped(merge_each(*reports)) is stopped


def test_final_report_by_a_clock_behind_a_polls_stops_the_instance() -> None:
    polled = InstanceRow("core/a1", "core", heard_at=NOW + A_SECOND)

    found, _ = merge_report(polled, report(1, is_final=True), NOW, EPOCH)

    assert is_stopped(found)


def count_instances(clock: Clock) -> tuple[int, int]:
    """Return the numbers of reporting instances and of those that stopped reporting."""
    live, silent = queries.count_versions(Head(EPOCH, 99), clock.now)
    return live.total, silent.total


@pytest.mark.usefixtures("published")
def test_late_write_of_an_earlier_poll_keeps_the_stop(
    idle: Following,
) -> None:
    clock = Clock()
    early, late = InstanceLedger(clock.wall), InstanceLedger(clock.wall)
    hear(idle, early, "core/a1", "18")
    clock.later(0.01)
    with writing(idle, late):
        idle.loop.run(late.report(report(is_final=True)))
    with writing(idle, early):
        wait_until(lambda: 18 in acks(), A_BATCH)

    assert row().stopped_at == row().heard_at == clock.now
    assert count_instances(clock) == (0, 0)
    clock.later(60)
    assert count_instances(clock) == (0, 0)


@pytest.mark.usefixtures("published")
def test_an_instance_that_polls_or_reports_again_counts_again(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        idle.loop.run(ledger.report(report(is_final=True)))
        assert count_instances(clock) == (0, 0)
        clock.later(1)
        hear(idle, ledger, "core/a1", "18")
        wait_until(lambda: row().heard_at == clock.now, A_BATCH)
        assert count_instances(clock) == (1, 0)

        idle.loop.run(ledger.report(report(2, is_final=True)))
        assert count_instances(clock) == (0, 0)
        idle.loop.run(ledger.report(report(3)))
        assert count_instances(clock) == (1, 0)


@pytest.mark.usefixtures("published")
def test_calls_of_check_and_late_reports_keep_the_time_of_the_stop(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        idle.loop.run(ledger.report(report(5, is_final=True)))
        stopped_at = row().stopped_at
        clock.later(1)
        idle.loop.run(ledger.report(report(4)))
        ledger.check_counter.record_check("core/a1", ["segment:a"], None)
        wait_until(lambda: "segment:a" in row().checks, 10)

    assert row().stopped_at == stopped_at == NOW


@pytest.mark.parametrize(("header", "is_final"), [("true", True), ("false", False), (None, False)])
def test_the_header_marks_the_final_report(header: str | None, is_final: bool) -> None:
    served = plane()
    taken = []

    async def store(one: InstanceReport, *_: object) -> bool:
        taken.append(one)
        return False

    served.state.ledger.report = store  # No database here.
    body = {"service": "core", "instance": "a1", "boot": str(BOOT), "seq": 1}
    mark = {} if header is None else {"Switchgear-Final-Report": header}
    response = ask(
        *(served, "POST", "/api/v1/report", {"X-API-Key": REPORTER} | mark),
        content=json.dumps(body).encode(),
    )

    assert response.status_code == 200
    assert [one.is_final for one in taken] == [is_final]


@pytest.mark.parametrize("path", ["/api/v1/snapshot/stream", "/api/v1/snapshot?wait=20"])
@pytest.mark.parametrize("seconds", [0.0, 0.15], ids=["at once", "while watched"])
def test_disconnect_is_not_recorded_as_contact(
    monkeypatch: pytest.MonkeyPatch, path: str, seconds: float
) -> None:
    monkeypatch.setattr(held_requests, "WATCH_AFTER_SECONDS", 0.1)
    headers = {**BEARER, "Switchgear-Instance": "core/a1", "If-None-Match": ETAG}

    async def run() -> None:
        served = plane("segment:finance")
        buffer = served.state.ledger.presence_buffer
        async with Exchange(Application(served), path, headers) as held:
            await asyncio.sleep(seconds)
            began, _ = buffer.take_due(0, 10, 0)
            assert [one.id for one in began] == ["core/a1"]
            held.hang_up()
            await asyncio.wait_for(held.task, 5)
        assert buffer.take_due(100, 10, 0) == ([], [])

    asyncio.run(run())


def test_a_client_that_stays_connected_is_heard_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_requests, "WATCH_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(held_requests, "QUIET_SECONDS", 0.05)
    headers = {**BEARER, "Switchgear-Instance": "core/a1", "If-None-Match": ETAG}

    async def run() -> None:
        served = plane("segment:finance")
        buffer = served.state.ledger.presence_buffer
        async with Exchange(Application(served), "/api/v1/snapshot?wait=20", headers):
            await asyncio.sleep(0)
            began, _ = buffer.take_due(0, 10, 0)
            await asyncio.sleep(0.3)
            again, _ = buffer.take_due(100, 10, 0)
        assert again[0].heard_at > began[0].heard_at

    asyncio.run(run())
