"""The latest snapshot is saved before it is served, so that a killed process restarts with it."""

import errno
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from controlplane.dataplane.memory.order_set import ClosedOrder
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk, signing_key
from controlplane.dataplane.tests.copies import (
    EPOCH,
    KEY,
    NOON,
    OTHER_EPOCH,
    SAVED,
    disk,
    version,
)
from switches.snapshot import SnapshotVersion, render
from switches.tests.snapshots import make_entry

SECOND = timedelta(seconds=1)


def save_latest(
    to: SnapshotDisk, number: int, epoch: UUID = EPOCH, published_at: datetime = NOON
) -> None:
    publication = SnapshotVersion(epoch, number, published_at)
    to.save_latest(publication, render(publication, SAVED.entries))


def loaded_version(folder: Path, **options: object) -> int | None:
    loaded = disk(folder, **options).load()
    return None if loaded is None else loaded.publication.version


def test_snapshot_saved_just_before_a_kill_is_loaded_with_the_tokens_of_the_copy(
    tmp_path: Path,
) -> None:
    before = version(17, entries=())
    disk(tmp_path).save(before)
    save_latest(disk(tmp_path), 18)

    loaded = disk(tmp_path).load()

    publication = SnapshotVersion(EPOCH, 18, NOON)
    assert loaded == replace(before, publication=publication, entries=SAVED.entries)


def test_snapshot_is_loaded_with_the_copy_before_a_damaged_one(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17))
    disk(tmp_path).save(version(18))
    save_latest(disk(tmp_path), 18)
    (tmp_path / "current").write_bytes(b"garbage")

    assert loaded_version(tmp_path) == 18


def test_older_snapshot_changes_nothing(tmp_path: Path) -> None:
    save_latest(disk(tmp_path), 17)
    disk(tmp_path).save(version(18))

    assert loaded_version(tmp_path) == 18


def test_snapshot_of_a_left_epoch_changes_nothing(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17, left_epochs=frozenset({OTHER_EPOCH})))
    save_latest(disk(tmp_path), 18, epoch=OTHER_EPOCH)

    assert loaded_version(tmp_path) == 17


def test_snapshot_of_another_epoch_that_is_not_newer_changes_nothing(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17))
    save_latest(disk(tmp_path), 18, epoch=OTHER_EPOCH, published_at=NOON - SECOND)

    assert loaded_version(tmp_path) == 17


def test_snapshot_of_a_new_epoch_saved_just_before_a_kill_is_loaded(tmp_path: Path) -> None:
    before = version(17, entries=())
    disk(tmp_path).save(before)
    save_latest(disk(tmp_path), 9, epoch=OTHER_EPOCH, published_at=NOON + SECOND)

    loaded = disk(tmp_path).load()

    assert loaded == replace(
        before,
        publication=SnapshotVersion(OTHER_EPOCH, 9, NOON + SECOND),
        entries=SAVED.entries,
        revision=0,  # Numbers of the previous epoch are void.
        registrations=-1,
        left_epochs=before.left_epochs | {EPOCH},
    )


def test_snapshot_without_a_copy_is_not_loaded(tmp_path: Path) -> None:
    save_latest(disk(tmp_path), 18)

    assert disk(tmp_path).load() is None


def test_slower_process_does_not_replace_a_newer_version(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17))
    save_latest(disk(tmp_path), 19)

    save_latest(disk(tmp_path), 18)

    assert loaded_version(tmp_path) == 19


def test_only_the_newest_snapshot_is_kept(tmp_path: Path) -> None:
    (tmp_path / "draft-latest-1").write_bytes(b"of a process that was killed")
    disk(tmp_path).save(version(17))
    for number in range(18, 22):
        save_latest(disk(tmp_path), number)

    disk(tmp_path).load()

    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["current", f"latest-{EPOCH}.21", "lock"]


@pytest.mark.parametrize("spoil", [lambda _: b"", lambda text: text[:-9], lambda _: b"garbage"])
def test_snapshot_that_a_power_failure_damaged_is_refused(
    tmp_path: Path, spoil, caplog: pytest.LogCaptureFixture
) -> None:
    disk(tmp_path).save(version(17))
    save_latest(disk(tmp_path), 18)
    latest = tmp_path / f"latest-{EPOCH}.18"
    latest.write_bytes(spoil(latest.read_bytes()))

    assert loaded_version(tmp_path) == 17

    assert caplog.text.count("dataplane.copy_refused") == 1
    assert latest.name in caplog.text


def test_snapshot_signed_with_another_key_is_refused(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17))
    save_latest(SnapshotDisk(tmp_path, signing_key("another secret")), 18)

    assert loaded_version(tmp_path) == 17


def test_snapshot_signed_with_an_older_key_is_loaded(tmp_path: Path) -> None:
    disk(tmp_path).save(version(17))
    save_latest(disk(tmp_path), 18)

    found = SnapshotDisk(tmp_path, signing_key("a newer secret"), older_keys=[KEY]).load()

    assert found is not None
    assert found.publication.version == 18


def test_snapshot_too_large_to_be_read_again_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="large") as refused:
        save_latest(disk(tmp_path, largest_bytes=100), 18)

    assert refused.value.errno == errno.EFBIG
    assert list(tmp_path.iterdir()) == []


def test_a_new_epoch_saved_just_before_a_kill_reopens_orders(tmp_path: Path) -> None:
    held, released = UUID(int=1), UUID(int=2)
    entry = make_entry("feature:chat")
    closed = {held: ClosedOrder(NOON, entry.id), released: ClosedOrder(NOON, "segment:a")}
    disk(tmp_path).save(version(17, entries=(entry,), closed=closed))
    save_latest(disk(tmp_path), 9, epoch=OTHER_EPOCH, published_at=NOON + SECOND)

    loaded = disk(tmp_path).load()

    assert loaded is not None
    assert (loaded.closed, loaded.settled) == ({}, {released})
