"""New epochs that release switches, and snapshots of epochs that were left, are logged."""

import json
import logging
import threading
import uuid
from typing import Any

import pytest

from switchgear.clock import ConsoleClock
from switchgear.evaluation import snapshot
from switchgear.evaluation.deduplicated_log import MAX_LINES
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.testing import FakeClock

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
NOW = 1_795_226_400.0  # 2026-11-21T02:00:00Z


def memory_of(clock: FakeClock | None = None, **more: Any) -> SnapshotStore:
    console_clock = ConsoleClock(clock or FakeClock(NOW))
    console_clock.trust_local()
    return SnapshotStore(console_clock, **more)


def snapshot_of(*switches: str, epoch: str, version: int = 1, **row: Any) -> snapshot.Snapshot:
    rows = [{"id": switch, "state": "engaged", **row} for switch in switches]
    document = {"schema": 1, "epoch": epoch, "version": version, "switches": rows}
    return snapshot.parse_snapshot(json.dumps(document).encode())


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_new_epoch_that_releases_everything_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat", "segment:finance", epoch=FIRST, version=17))

    store.accept(snapshot_of(epoch=SECOND, version=3))

    [(level, message)] = logged(caplog)
    assert level == logging.ERROR
    assert "releases all 2 switches" in message
    assert "segment:finance, feature:chat" in message
    assert f"{FIRST}.17" in message
    assert f"{SECOND}.3" in message


def test_new_epoch_that_releases_some_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    features = [f"feature:f{number}" for number in range(9)]
    store.accept(snapshot_of("global:all", "segment:a", *features, epoch=FIRST))

    store.accept(snapshot_of("segment:a", epoch=SECOND))

    [(level, message)] = logged(caplog)
    assert level == logging.WARNING
    assert "releases 10 of 11 switches" in message
    assert "global:all, feature:f0, feature:f1, feature:f2, feature:f3 and 5 more" in message


def test_ramp_ended_by_a_new_epoch_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    ramps = {"state": "ramping", "allow_percent": 5, "salt": "s"}
    store.accept(snapshot_of("feature:chat", epoch=FIRST, **ramps))

    store.accept(snapshot_of(epoch=SECOND))

    assert len(logged(caplog)) == 1


def test_first_answer_releasing_bootstrapped_switches_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = memory_of()
    store.bootstrap(snapshot_of("feature:chat", epoch=FIRST, version=17))

    store.accept(snapshot_of(epoch=SECOND, version=3))

    [(level, message)] = logged(caplog)
    assert level == logging.ERROR
    assert "releases all 1 switches that were engaged or ramping: feature:chat" in message
    assert f"{FIRST}.17 before, {SECOND}.3 now" in message


def test_first_answer_in_the_epoch_of_the_bootstrap_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = memory_of()
    store.bootstrap(snapshot_of("feature:chat", epoch=FIRST, version=17))

    store.accept(snapshot_of(epoch=FIRST, version=3))

    assert logged(caplog) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), ("feature:chat",)),
        (("feature:chat",), ("feature:chat", "segment:finance")),
        (("segment:forced",), ()),
    ],
)
def test_new_epoch_without_releases_is_not_logged(
    before: tuple[str, ...], after: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    store = memory_of(forced={"segment:forced"})
    store.accept(snapshot_of(*before, epoch=FIRST))

    store.accept(snapshot_of(*after, epoch=SECOND))

    assert logged(caplog) == []


def test_release_within_an_epoch_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat", epoch=FIRST, version=1))

    store.accept(snapshot_of(epoch=FIRST, version=2))

    assert logged(caplog) == []


def test_engagement_that_had_ended_by_itself_was_not_released_by_the_epoch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock(NOW)
    store = memory_of(clock)
    ends = {"expires_at": "2026-11-21T02:01:00Z", "on_expiry": "release"}
    store.accept(snapshot_of("feature:chat", epoch=FIRST, **ends))
    clock.advance(66)

    store.accept(snapshot_of(epoch=SECOND))

    assert logged(caplog) == []


def test_snapshot_of_an_epoch_that_was_left_is_an_error_once_for_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = memory_of()
    for epoch in (FIRST, SECOND, THIRD):
        store.accept(snapshot_of(epoch=epoch))

    for version in range(5):
        assert not store.accept(snapshot_of("feature:chat", epoch=FIRST, version=version))
        assert not store.accept(snapshot_of("feature:chat", epoch=SECOND, version=version))

    assert [level for level, _ in logged(caplog)] == [logging.ERROR] * 2
    assert [epoch in text for epoch, (_, text) in zip((FIRST, SECOND), logged(caplog), strict=True)]
    assert all(f"keeping {THIRD}.1" in text for _, text in logged(caplog))


def test_epoch_left_before_a_restart_is_logged_without_a_snapshot(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = memory_of()
    store.left_epochs = (FIRST,)

    assert not store.accept(snapshot_of("feature:chat", epoch=FIRST))

    [(_, message)] = logged(caplog)
    assert "no snapshot yet" in message


def test_lower_version_of_the_epoch_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    store.accept(snapshot_of(epoch=FIRST, version=5))

    assert not store.accept(snapshot_of("feature:chat", epoch=FIRST, version=4))

    assert logged(caplog) == []


def test_epochs_without_end_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    epochs = [str(uuid.UUID(int=number)) for number in range(3 * MAX_LINES)]
    for epoch in epochs:
        store.accept(snapshot_of(epoch=epoch))

    for epoch in epochs[:-1]:
        store.accept(snapshot_of(epoch=epoch))

    assert len(logged(caplog)) == MAX_LINES


def test_log_handler_waiting_for_a_reader_does_not_block_the_store() -> None:
    """Log lines are written without the lock, since a handler has one of its own."""
    store = memory_of()
    store.accept(snapshot_of("feature:chat", epoch=FIRST))
    free: list[bool] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            def ask() -> None:
                free.append(store._lock.acquire(timeout=5))
                store._lock.release()

            asking = threading.Thread(target=ask)
            asking.start()
            asking.join()

    handler = Handler()
    logging.getLogger("switchgear").addHandler(handler)
    try:
        store.accept(snapshot_of(epoch=SECOND))
        store.accept(snapshot_of(epoch=FIRST))
    finally:
        logging.getLogger("switchgear").removeHandler(handler)

    assert free == [True, True]
