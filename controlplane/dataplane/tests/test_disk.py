"""The copy on disk: complete, private, and never replaced by an older one."""

import os
import resource
import stat
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given

from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.storage.saved_snapshot import SavedState
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk, signing_key
from controlplane.dataplane.tests.copies import (
    KEY,
    NOON,
    SAVED,
    disk,
    saved_copies,
    version,
)
from switches.snapshot import render


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@given(saved_copies)
def test_whatever_is_saved_is_loaded_again(saved: SavedState) -> None:
    with tempfile.TemporaryDirectory() as folder:
        SnapshotDisk(Path(folder), KEY).save(saved)

        assert SnapshotDisk(Path(folder), KEY).load() == saved


def test_document_on_disk_is_the_one_that_is_published(tmp_path: Path) -> None:
    disk(tmp_path).save(SAVED)

    served = Copy.render(SAVED.publication, SAVED.entries)
    published = render(SAVED.publication, SAVED.entries)
    assert published in (tmp_path / "current").read_bytes()
    loaded = disk(tmp_path).load()
    assert loaded is not None
    assert Copy.render(loaded.publication, loaded.entries) == served


def test_nothing_on_disk_is_none_and_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert disk(tmp_path / "never" / "made").load() is None
    assert disk(tmp_path).load() is None
    assert not caplog.records


def test_folder_and_files_are_for_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "dataplane"
    folder.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        disk(folder).save(version(1))
        disk(folder).save(version(2))
    finally:
        os.umask(before)

    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        "current": 0o600,
        "previous": 0o600,
        "lock": 0o600,
    }


def test_the_one_before_is_kept(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        disk(tmp_path).save(version(number))

    (tmp_path / "current").unlink()
    assert disk(tmp_path).load() == version(2)


def test_same_copy_confirmed_later_is_saved_with_the_later_time(tmp_path: Path) -> None:
    one = disk(tmp_path)
    one.save(version(5))
    later = version(5, confirmed_at=NOON + timedelta(seconds=50))
    one.save(later)

    assert disk(tmp_path).load() == later


def test_same_copy_twice_is_written_once(tmp_path: Path) -> None:
    one = disk(tmp_path)
    one.save(version(4))
    one.save(version(5))
    one.save(version(5))
    disk(tmp_path).save(version(5))

    (tmp_path / "current").unlink()
    assert disk(tmp_path).load() == version(4)


def test_crash_between_the_two_renames_leaves_the_one_before(tmp_path: Path) -> None:
    disk(tmp_path).save(version(5))
    (tmp_path / "current").rename(tmp_path / "previous")
    (tmp_path / "draft").write_bytes(b"half of version 6")

    assert disk(tmp_path).load() == version(5)
    disk(tmp_path).save(version(7))
    assert disk(tmp_path).load() == version(7)
    assert not (tmp_path / "draft").exists()
    (tmp_path / "current").unlink()
    assert disk(tmp_path).load() == version(5)


def test_copy_that_could_not_be_read_again_is_not_saved(tmp_path: Path) -> None:
    disk(tmp_path).save(version(5))
    size = (tmp_path / "current").stat().st_size
    small = disk(tmp_path, largest_bytes=size + 20)

    many = frozenset(f"segment:s{number}" for number in range(50))
    with pytest.raises(OSError, match="too large"):
        small.save(version(6, known=many, registrations=50))

    assert small.load() == version(5)


def test_disk_that_takes_no_more_raises_and_keeps_what_was_there(tmp_path: Path) -> None:
    disk(tmp_path).save(version(5))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            disk(tmp_path).save(version(6))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    assert disk(tmp_path).load() == version(5)
    assert not (tmp_path / "draft").exists()


def test_folder_that_can_not_be_made_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(OSError, match="file"):
        disk(tmp_path / "file" / "dataplane").save(SAVED)
    assert disk(tmp_path / "file" / "dataplane").load() is None


def test_clock_set_back_is_told_and_the_copy_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk(tmp_path).save(SAVED)
    an_hour_ago = SAVED.confirmed_at - timedelta(hours=1)

    assert disk(tmp_path, clock=lambda: an_hour_ago).load() == SAVED

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.msg["event"] == "dataplane.copy_postdated"
    assert record.msg["ahead_seconds"] == 3600
    assert record.msg["file"].startswith(str(tmp_path))


def test_clocks_a_second_apart_are_not_worth_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk(tmp_path).save(SAVED)
    a_second_ago = SAVED.confirmed_at - timedelta(seconds=1)

    assert disk(tmp_path, clock=lambda: a_second_ago).load() == SAVED
    assert not caplog.records


def test_ten_thousand_known_switches_are_quick(tmp_path: Path) -> None:
    known = frozenset(f"segment:s{number:05}" for number in range(10_000))
    one = disk(tmp_path)
    one.save(version(1, known=known, registrations=10_000))

    began = time.process_time()
    one.save(version(2, known=known, registrations=10_000))
    assert disk(tmp_path).load() == replace(version(2), known=known, registrations=10_000)
    assert time.process_time() - began < 0.5


def test_signing_key_is_not_the_secret_itself() -> None:
    assert signing_key("secret") != b"secret"
    assert signing_key("secret") != signing_key("secre")
    assert len(signing_key("secret")) == 32


def test_older_signed_file_put_back_is_taken_as_the_docs_say(tmp_path: Path) -> None:
    """A documented limit: a signature can't prove age, only the confirmation time shows it."""
    writer = disk(tmp_path)
    writer.save(version(17))
    old = (tmp_path / "current").read_bytes()
    writer.save(version(18))
    (tmp_path / "current").write_bytes(old)

    loaded = disk(tmp_path).load()

    assert loaded is not None
    assert loaded.publication.version == 17
    assert loaded.confirmed_at == version(17).confirmed_at
