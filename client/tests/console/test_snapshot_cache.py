"""The copy on disk: sound or not there at all, and never a reason for trouble."""

import json
import multiprocessing
import os
import stat
import time
from pathlib import Path

import pytest

from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.file_cache import SnapshotCache, checksum
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from tests.fake_console import document, entry

EPOCH, OTHER = "0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b41", "0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b42"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "home" / "state"


def settings(folder, url="https://there", service="core"):
    return Settings(url=url, token="t", state_dir=folder, service=service, instance="a1")


def knowing(version, epoch=EPOCH, left=(), switch="feature:chat"):
    store = SnapshotStore(ConsoleClock(SystemTime()))
    store.left_epochs = tuple(left)
    store.accept(parse_snapshot(document(epoch, version, {switch: entry(switch)})))
    return store


def restored(folder, **more):
    store = SnapshotStore(ConsoleClock(SystemTime()))
    SnapshotCache(settings(folder, **more)).restore(store)
    return store


def keep(folder, store):
    SnapshotCache(settings(folder)).save(store)


def the_file(folder):
    [file] = folder.glob("*.snapshot")
    return file


def test_what_was_kept_is_known_at_the_next_start(folder):
    keep(folder, knowing(7, left=(OTHER,)))
    store = restored(folder)
    assert store.snapshot == knowing(7).snapshot
    assert store.left_epochs == (OTHER,)
    assert not store.accept(parse_snapshot(document(OTHER, 99, {})))


def test_it_is_for_nobody_else_to_read(folder):
    keep(folder, knowing(7))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "token" not in the_file(folder).read_text()


def test_each_console_and_service_has_its_own(folder):
    keep(folder, knowing(7))
    assert restored(folder, url="https://elsewhere").snapshot is None
    assert restored(folder, service="oracle").snapshot is None
    assert restored(folder, url="https://there/").snapshot is not None


def test_an_older_version_never_replaces_a_newer_one(folder):
    keep(folder, knowing(8))
    keep(folder, knowing(7))
    assert restored(folder).snapshot.version == 8
    keep(folder, knowing(9))
    assert restored(folder).snapshot.version == 9


def test_who_has_left_our_epoch_knows_better(folder):
    keep(folder, knowing(1, epoch=OTHER, left=(EPOCH,)))
    keep(folder, knowing(99))
    assert restored(folder).snapshot.epoch == OTHER
    keep(folder, knowing(5, epoch=EPOCH[:-1] + "7", left=(OTHER,)))
    assert restored(folder).snapshot.version == 5


@pytest.mark.parametrize("where", [0, 30, 200, -1])
def test_a_copy_that_is_damaged_is_not_taken_and_made_anew(folder, where, caplog):
    keep(folder, knowing(99))
    content = bytearray(the_file(folder).read_bytes())
    content[where] ^= 1
    the_file(folder).write_bytes(content)

    assert restored(folder).snapshot is None
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    keep(folder, knowing(7))
    assert restored(folder).snapshot.version == 7


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{}\n{}",
        b"[]\n",
        b"\xff\n",
        b"[" * 100_000,
        b"x" * 20_000_000,
        b'{"format":9}\n',
    ],
    ids=["empty", "line", "objects", "list", "bytes", "deep", "large", "later"],
)
def test_whatever_is_there_nothing_is_raised(folder, content):
    keep(folder, knowing(1))
    the_file(folder).write_bytes(content)
    assert restored(folder).snapshot is None
    keep(folder, knowing(2))
    assert restored(folder).snapshot.version == 2


def test_a_link_in_its_place_is_not_followed(folder, tmp_path, caplog):
    keep(folder, knowing(1))
    elsewhere = tmp_path / "elsewhere"
    the_file(folder).rename(elsewhere)
    Path(folder, SnapshotCache(settings(folder)).name).symlink_to(elsewhere)
    assert restored(folder).snapshot is None
    assert "was not read" in caplog.text
    before = elsewhere.read_bytes()
    keep(folder, knowing(2))
    assert elsewhere.read_bytes() == before
    assert restored(folder).snapshot.version == 2


@pytest.mark.parametrize("which", ["folder", "file"])
def test_what_others_may_write_to_is_not_trusted(folder, which, caplog):
    keep(folder, knowing(1))
    (folder if which == "folder" else the_file(folder)).chmod(0o722)
    assert restored(folder).snapshot is None
    assert "other users can write" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["folder", "file"])
def test_what_belongs_to_somebody_else_is_not_trusted(folder, which, caplog):
    keep(folder, knowing(1))
    os.chown(folder if which == "folder" else the_file(folder), 12345, 12345)
    assert restored(folder).snapshot is None
    assert "belongs to another user" in caplog.text


def test_a_folder_that_is_a_link_is_refused(folder, tmp_path):
    keep(folder, knowing(1))
    other = tmp_path / "link"
    other.symlink_to(folder)
    assert restored(other).snapshot is None


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/x", "/dev/full/x"])
def test_where_nothing_can_be_written_that_is_said_once(place, caplog):
    disk = SnapshotCache(settings(Path(place)))
    for version in range(3):
        disk.save(knowing(version))
    assert len(caplog.records) == 1
    assert restored(Path(place)).snapshot is None


def test_a_full_disk_leaves_what_was_there(folder, caplog):
    """The size a file may have is the nearest thing to a full disk."""
    keep(folder, knowing(1))
    done = multiprocessing.get_context("fork").Process(target=keep_on_full_disk, args=(folder,))
    done.start()
    done.join(20)
    assert done.exitcode == 0
    assert restored(folder).snapshot.version == 1
    assert not list(folder.glob("*.new"))
    keep(folder, knowing(3))
    assert restored(folder).snapshot.version == 3


def keep_on_full_disk(folder):
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    keep(folder, knowing(2))


def test_many_processes_that_write_leave_the_newest(folder):
    keep(folder, knowing(0))
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=keep_many, args=(folder, first)) for first in range(4)]
    for one in writers:
        one.start()
    for _ in range(50):
        assert restored(folder).snapshot is not None
    for one in writers:
        one.join(60)
        assert one.exitcode == 0
    assert restored(folder).snapshot.version == 103


def keep_many(folder, first):
    for number in range(26):
        keep(folder, knowing(4 * number + first))


def test_a_lock_that_somebody_holds_is_not_waited_for_long(folder, caplog):
    import fcntl

    keep(folder, knowing(1))
    [lock] = folder.glob("*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        keep(folder, knowing(2))
    assert "another process has locked it" in caplog.text
    keep(folder, knowing(2))
    assert restored(folder).snapshot.version == 2


def test_what_an_interrupted_writer_left_is_in_nobodys_way(folder):
    keep(folder, knowing(1))
    Path(folder, f"{SnapshotCache(settings(folder)).name}.new").write_bytes(b"half")
    keep(folder, knowing(2))
    assert restored(folder).snapshot.version == 2
    assert not list(folder.glob("*.new"))


def test_without_a_folder_nothing_is_kept():
    disk = SnapshotCache(settings(None))
    disk.save(knowing(1))
    store = SnapshotStore(ConsoleClock(SystemTime()))
    disk.restore(store)
    assert store.snapshot is None


@pytest.mark.parametrize("fault", ["mode", "gone"])
def test_a_copy_that_could_not_be_kept_or_is_gone_is_written_later(folder, fault):
    disk, store = SnapshotCache(settings(folder), recheck_seconds=0.05), knowing(1)
    keep(folder, store)
    if fault == "mode":
        folder.chmod(0o777)
    store = knowing(2)
    disk.save(store)
    if fault == "mode":
        folder.chmod(0o700)
    else:
        the_file(folder).unlink()
    disk.save_if_missing(store)
    time.sleep(0.1)
    disk.save_if_missing(store)
    assert restored(folder).snapshot.version == 2


def test_it_is_not_looked_after_at_every_word(folder):
    disk, store = SnapshotCache(settings(folder)), knowing(1)
    disk.save(store)
    the_file(folder).unlink()
    disk.save_if_missing(store)
    assert not list(folder.glob("*.snapshot"))


@pytest.mark.parametrize("left", [{}, {"left_epochs": 7}])
def test_a_sound_checksum_over_something_else_is_damage(folder, caplog, left):
    header = {"format": 1, "epoch": EPOCH, "version": 1, **left}
    keep(folder, knowing(1))
    body = knowing(1).snapshot.document
    first = json.dumps({**header, "sha256": checksum(header, body)}).encode()
    the_file(folder).write_bytes(first + b"\n" + body)
    assert restored(folder).snapshot is None
    assert "the file is damaged" in caplog.text
