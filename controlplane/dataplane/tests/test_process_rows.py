"""Each data plane process writes its status to a row of its own."""

import time
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

import controlplane
from controlplane.core.fleet.models import DataPlane
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.processes import ProcessStatus
from controlplane.dataplane.relay.process_identity import ProcessIdentity
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import A_BATCH, COPY, NOW, Clock, hear, writing
from controlplane.dataplane.tests.lines import wait_until

QUICK = Timing(status=0.1, max_pause=0.05)
STATUS = ProcessStatus(process=uuid4(), name="dp-1", started_at=NOW, heard_at=NOW)


def load_plane(name: str = "dp-1") -> DataPlane | None:
    return DataPlane.objects.filter(name=name).first()


def test_running_plane_writes_its_row(idle: Following) -> None:
    idle.config = replace(idle.config, plane="dp-7")
    idle.start()
    wait_until(
        lambda: load_plane("dp-7") is not None and load_plane("dp-7").version is not None, 12
    )

    found = load_plane("dp-7")
    copy = idle.state.copy
    assert (found.upstream, found.is_relay) == ("", False)
    assert found.release == controlplane.__version__
    assert (found.epoch, found.version) == (copy.publication.epoch, copy.publication.version)
    assert 0 <= found.age_seconds < 10
    assert timedelta(0) <= timezone.now() - found.heard_at < timedelta(seconds=10)
    assert found.started_at <= found.heard_at


def test_row_of_a_plane_that_stops_is_marked_until_it_is_heard_again(idle: Following) -> None:
    idle.config = replace(idle.config, plane="dp-7")
    idle.start()
    wait_until(lambda: load_plane("dp-7") is not None, 12)

    idle.stop()

    stopped = load_plane("dp-7")
    assert stopped.is_stopped
    idle.start()
    running = DataPlane.objects.filter(name="dp-7", is_stopped=False)
    wait_until(running.exists, 12)
    assert running.get().pk != stopped.pk


def test_plane_stops_within_two_seconds_without_the_database(idle: Following) -> None:
    idle.start()
    wait_until(DataPlane.objects.exists, 12)
    idle.database.freeze()
    began = time.monotonic()

    idle.stop()

    assert time.monotonic() - began < 2
    assert not DataPlane.objects.get().is_stopped


def test_status_counts_instances_heard_in_the_last_minute(idle: Following) -> None:
    state, identity = idle.state, ProcessIdentity("dp-1")
    clock = Clock()
    buffer = InstanceLedger(clock.wall).presence_buffer
    state.ledger.presence_buffer = buffer
    for name in (b"core/a1", b"core/a2", b"core/a3"):
        buffer.record_presence(name, b"17", COPY)
        clock.later(25)

    assert identity.describe(state).instances == 2


def test_row_has_the_newest_status_whoever_writes_it_last(idle: Following) -> None:
    late, early = (InstanceLedger(Clock().wall, timing=QUICK) for _ in range(2))
    late.describe_process = lambda: replace(STATUS, held=2, heard_at=NOW + timedelta(seconds=1))
    early.describe_process = lambda: replace(STATUS, held=1)
    with writing(idle, late):
        wait_until(lambda: load_plane() is not None, A_BATCH)
    with writing(idle, early):
        hear(idle, early, "core/a1")
        time.sleep(0.5)

    assert load_plane().held == 2


def test_status_of_a_clock_that_is_ahead_counts_as_of_now(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall, timing=QUICK)
    ahead = timezone.now() + timedelta(hours=1)
    ledger.describe_process = lambda: replace(STATUS, started_at=ahead, heard_at=ahead)
    with writing(idle, ledger):
        wait_until(lambda: load_plane() is not None, A_BATCH)

    assert load_plane().heard_at <= timezone.now()
    assert load_plane().started_at <= timezone.now()


def test_status_is_written_again_after_an_outage(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall, timing=QUICK)
    numbers = iter(range(1, 1000))

    def describe() -> ProcessStatus:
        number = next(numbers)
        return replace(STATUS, held=number, heard_at=NOW + timedelta(seconds=number))

    ledger.describe_process = describe
    with writing(idle, ledger):
        wait_until(lambda: load_plane() is not None, A_BATCH)
        idle.database.cut()
        time.sleep(0.5)
        before = load_plane().held
        idle.database.mend()
        wait_until(lambda: load_plane().held > before, A_BATCH)


@pytest.mark.usefixtures("published")
def test_ledger_without_a_status_writes_no_row(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall, timing=QUICK)
    with writing(idle, ledger):
        hear(idle, ledger, "core/a1")
        time.sleep(0.4)

    assert not DataPlane.objects.exists()
