"""A data directory on a full or read-only disk: the run continues, and recovers by itself."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from controlplane.supervisor.tests import harness
from controlplane.supervisor.tests.harness import is_up, services, start

pytestmark = pytest.mark.faults

DISK = "200m"


@pytest.fixture
def disk(open_folder: Path) -> Iterator[Path]:
    """A small file system with a data directory that has something to serve."""
    place = open_folder / "disk"
    place.mkdir()
    mounted = mount("-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", str(place))
    if not mounted:
        pytest.skip("this user may not mount a file system")
    try:
        copy = place / "data" / "snapshot" / "current"
        copy.parent.mkdir(parents=True)
        copy.parents[1].chmod(0o711)
        copy.touch()
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1_000_000)) or file.write(bytes(4096))
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return filler


def fill_write_ahead_log(owner: psycopg.Connection) -> None:
    with contextlib.suppress(psycopg.Error):
        for _ in range(100):
            owner.execute("SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000000))")
        pytest.fail("100 MB of log fit on a full disk")


def test_a_full_disk_ends_nothing_and_all_recovers_once_there_is_room(disk: Path) -> None:
    data = disk / "data"
    with start(data) as run:
        run.wait_until_ready()
        with psycopg.connect(services(data)["database_owner_url"], autocommit=True) as owner:
            owner.execute("SELECT 1")
            filler = fill(disk)
            fill_write_ahead_log(owner)

        run.wait_for("postgres stopped 5 times in a row", 60)
        assert not harness.is_free(run.port)
        filler.unlink()
        harness.wait_until(lambda: is_up(data), 20, run)
        assert run.end()[0] == 0
        harness.assert_nothing_left(run)


def test_a_read_only_disk_can_be_started_on_and_recovers_once_it_is_writable(disk: Path) -> None:
    data = disk / "data"
    with start(data) as run:
        run.wait_until_ready()
        assert run.end()[0] == 0
    assert mount("-o", "remount,ro", str(disk))

    with start(data) as again:
        again.wait_for("postgres stopped 5 times in a row", 60)
        with start(data) as third:
            assert third.wait() == 2
            assert "already running here" in third.output
            assert mount("-o", "remount,rw", str(disk))

            again.wait_until_ready()
            assert is_up(data)


def test_a_run_on_a_read_only_disk_ends_when_it_is_told_to(disk: Path) -> None:
    data = disk / "data"
    with start(data) as run:
        run.wait_until_ready()
        run.end()
    assert mount("-o", "remount,ro", str(disk))

    with start(data) as again:
        again.wait_for("Continuing, and retrying postgres.")

        assert again.end()[0] == 0
        harness.wait_until(lambda: not harness.processes_of(data), 3, again)
    assert "Traceback" not in again.output
