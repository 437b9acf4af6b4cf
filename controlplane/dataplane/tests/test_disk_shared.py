"""Several processes that share a folder: late writers and crashes never restore older content."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core import private_files
from controlplane.dataplane.storage.saved_snapshot import SavedState
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk
from controlplane.dataplane.tests.copies import (
    CREDENTIAL,
    ENTRY,
    EPOCH,
    NOON,
    OTHER_EPOCH,
    THIRD_EPOCH,
    disk,
    version,
)

ROOT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from pathlib import Path
from controlplane.dataplane.tests.copies import disk, version
own = disk(Path(sys.argv[1]))
many = frozenset(f"segment:s{number}" for number in range(3000))
for number in range(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])):
    own.save(version(number, known=many, registrations=3000))
    print(number, flush=True)
"""


def writer(folder: Path, marker: Path, *numbers: int) -> "subprocess.Popen[bytes]":
    """Run a process that saves versions (first, end, step) and prints each one once saved."""
    with marker.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), *map(str, numbers)], cwd=ROOT, stdout=file
        )


def test_older_version_that_comes_late_changes_nothing(tmp_path: Path) -> None:
    ahead, behind = disk(tmp_path), disk(tmp_path)
    behind.save(version(16))
    ahead.save(version(18))
    behind.save(version(17))
    behind.save(version(17, confirmed_at=NOON + timedelta(hours=1)))

    assert disk(tmp_path).load() == version(18)


def test_each_part_is_kept_at_its_newest(tmp_path: Path) -> None:
    """Two processes: one has read the new version, the other a token's revocation."""
    known = frozenset({"segment:finance", "segment:new"})
    disk(tmp_path).save(version(17, tokens={}, revision=5, known=known, registrations=3))
    disk(tmp_path).save(version(18, tokens={b"gone": CREDENTIAL}, revision=4, registrations=2))

    expected = version(18, tokens={}, revision=5, known=known, registrations=3)
    assert disk(tmp_path).load() == expected


def test_earlier_confirmation_does_not_make_a_copy_older(tmp_path: Path) -> None:
    late = version(18, confirmed_at=NOON + timedelta(seconds=90))
    disk(tmp_path).save(late)
    disk(tmp_path).save(version(18, revision=9))

    assert disk(tmp_path).load() == replace(late, revision=9)


def test_copy_of_an_epoch_that_was_left_is_not_saved(tmp_path: Path) -> None:
    begun = version(1, OTHER_EPOCH, left_epochs=frozenset({EPOCH}))
    disk(tmp_path).save(version(17))
    disk(tmp_path).save(begun)
    disk(tmp_path).save(version(99, confirmed_at=NOON + timedelta(days=1)))

    assert disk(tmp_path).load() == begun


def test_new_epoch_replaces_a_higher_version_and_keeps_what_was_left(tmp_path: Path) -> None:
    disk(tmp_path).save(version(99, left_epochs=frozenset({THIRD_EPOCH})))
    disk(tmp_path).save(version(1, OTHER_EPOCH, left_epochs=frozenset({EPOCH})))

    loaded = disk(tmp_path).load()
    assert loaded == version(1, OTHER_EPOCH, left_epochs=frozenset({EPOCH, THIRD_EPOCH}))


def test_of_two_epochs_that_do_not_know_each_other_the_one_confirmed_later_stays(
    tmp_path: Path,
) -> None:
    disk(tmp_path).save(version(50))
    disk(tmp_path).save(version(20, OTHER_EPOCH))
    assert disk(tmp_path).load() == version(50)

    disk(tmp_path).save(version(51, OTHER_EPOCH))
    assert disk(tmp_path).load() == version(51, OTHER_EPOCH)


copies = st.builds(
    version,
    st.integers(0, 4),
    st.just(EPOCH),
    revision=st.integers(0, 4),
    registrations=st.integers(0, 4),
    left_epochs=st.frozensets(st.sampled_from([OTHER_EPOCH, THIRD_EPOCH])),
    confirmed_at=st.integers(0, 4).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)


@given(present=copies, news=copies)
def test_nothing_of_an_epoch_ever_goes_back(present: SavedState, news: SavedState) -> None:
    result = SnapshotDisk.merge(present, news)

    for before in (present, news):
        assert result.publication.version >= before.publication.version
        assert result.revision >= before.revision
        assert result.registrations >= before.registrations
        assert result.left_epochs >= before.left_epochs
    assert SnapshotDisk.merge(result, news) == result
    assert SnapshotDisk.merge(result, present) == result


def test_entries_come_with_their_version_and_tokens_with_their_revision() -> None:
    old = version(17, entries=(), tokens={}, revision=1, known=frozenset(), registrations=0)
    new = version(18, entries=(ENTRY,), revision=2, registrations=1)

    assert SnapshotDisk.merge(old, new) == new
    assert SnapshotDisk.merge(new, old) == new


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_processes_that_save_at_once_end_at_the_newest(tmp_path: Path) -> None:
    folder = tmp_path / "dataplane"
    writers = [writer(folder, tmp_path / f"told-{first}", first, 60, 3) for first in range(3)]
    reader, last = disk(folder), -1
    while any(each.poll() is None for each in writers):
        loaded = reader.load()
        if loaded is not None:
            assert loaded.publication.version >= last
            last = loaded.publication.version

    assert [each.wait() for each in writers] == [0, 0, 0]
    loaded = reader.load()
    assert loaded is not None
    assert loaded.publication.version == 59


@pytest.mark.faults
@pytest.mark.smoke
@pytest.mark.timeout(60)
def test_process_killed_while_it_saves_loses_nothing_it_had_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, marker = tmp_path / "dataplane", tmp_path / "told"
    number = 0
    for moment in range(8):
        process = writer(folder, marker, number, number + 100_000, 1)
        while b"\n" not in marker.read_bytes():
            time.sleep(0.005)
        time.sleep(0.005 * moment)
        process.kill()
        process.wait()

        loaded = disk(folder).load()

        assert loaded is not None
        last_told = int(marker.read_bytes().rpartition(b"\n")[0].splitlines()[-1])
        # It may have saved one more than it printed.
        assert loaded.publication.version - last_told in {0, 1}
        number = loaded.publication.version + 1
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_writer_waits_for_another_and_then_sees_what_it_wrote(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17))
    held = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    waiting = threading.Thread(target=disk(tmp_path).save, args=(version(18),))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    assert disk(tmp_path).load() == version(17)

    os.close(held)
    waiting.join(5)
    assert disk(tmp_path).load() == version(18)


def test_frozen_holder_of_the_lock_costs_one_save_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_files, "LOCK_SECONDS", 0.3)
    disk(tmp_path).save(version(17))
    held = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            disk(tmp_path).save(version(18))
    finally:
        os.close(held)

    assert 0.3 <= time.monotonic() - began < 2
    assert disk(tmp_path).load() == version(17)


def test_no_file_is_left_open(tmp_path: Path) -> None:
    own = disk(tmp_path)
    own.save(version(0))
    before = len(os.listdir("/dev/fd"))
    for number in range(1, 20):
        own.save(version(number))
        disk(tmp_path).load()

    assert len(os.listdir("/dev/fd")) == before
