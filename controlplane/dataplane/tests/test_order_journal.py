"""The journal of emergency orders: durable, signed, shared by processes."""

import errno
import os
import stat
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from controlplane.dataplane.storage.order_journal import OrderJournal, order_key

from .test_order_set import order, withdrawal

KEY, OLDER = order_key("a secret"), order_key("an older secret")


def journal(folder: Path, *keys: bytes) -> OrderJournal:
    return OrderJournal(folder, keys or (KEY,))


def file_of(folder: Path, number: int) -> Path:
    (found,) = (folder / "emergency").glob(f"{UUID(int=number)}-*.order")
    return found


def test_orders_survive_and_known_ones_are_not_read(tmp_path: Path) -> None:
    written = journal(tmp_path)
    assert written.load() == []
    assert written.changed_at() == 0
    written.write(order(1))
    written.write(withdrawal(2, 1))
    assert journal(tmp_path).load() == [order(1), withdrawal(2, 1)]
    assert journal(tmp_path).load([order(1)]) == [withdrawal(2, 1)]
    written.remove([UUID(int=1), UUID(int=9)])
    assert journal(tmp_path).load() == [withdrawal(2, 1)]


def test_two_orders_with_one_id_are_both_kept(tmp_path: Path) -> None:
    chat, finance = order(1), order(1, "segment:finance", plane="dp-2")
    written = journal(tmp_path)
    written.write(chat)
    written.write(finance)
    assert set(journal(tmp_path).load()) == {chat, finance}
    assert journal(tmp_path).load([chat]) == [finance]
    written.remove([UUID(int=1)])
    assert journal(tmp_path).load() == []


def test_an_added_order_is_noticed_by_other_processes(tmp_path: Path) -> None:
    journal(tmp_path).write(order(1))
    before = journal(tmp_path).changed_at()
    journal(tmp_path).write(order(2))
    assert journal(tmp_path).changed_at() != before


def test_only_this_user_can_read_orders(tmp_path: Path) -> None:
    journal(tmp_path).write(order(1))
    assert file_of(tmp_path, 1).stat().st_mode & 0o777 == 0o600
    assert file_of(tmp_path, 1).parent.stat().st_mode & 0o777 == 0o700


def test_orders_signed_with_an_older_key_are_kept(tmp_path: Path) -> None:
    journal(tmp_path, OLDER).write(order(1))
    assert journal(tmp_path, KEY, OLDER).load() == [order(1)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: path.write_bytes(path.read_bytes().replace(b"chat", b"mail")), "signature"),
        (lambda path: path.write_bytes(path.read_bytes()[:-5]), "signature"),
        (lambda path: path.write_bytes(b""), "not a copy"),
        (lambda path: path.write_bytes(b"x" * 70_000), "larger"),
        (lambda path: path.chmod(0o644), "chmod 600"),
    ],
)
def test_an_altered_order_is_refused_loudly_once(tmp_path: Path, change, why: str) -> None:  # type: ignore[no-untyped-def]
    journal(tmp_path).write(order(1))
    journal(tmp_path).write(order(2))
    change(file_of(tmp_path, 1))
    reading = journal(tmp_path)
    with capture_logs() as logs:
        assert reading.load() == [order(2)]
        assert reading.load() == [order(2)]
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("emergency_order.file_refused", "error")
    assert why in line["why"]


def test_a_file_that_can_be_read_again_is_an_order_again(tmp_path: Path) -> None:
    journal(tmp_path).write(order(1), order(2))
    file_of(tmp_path, 1).chmod(0o644)
    reading = journal(tmp_path)
    assert reading.load() == [order(2)]
    file_of(tmp_path, 1).chmod(0o600)
    assert reading.load() == [order(1), order(2)]


def test_a_draft_of_a_killed_process_is_no_order(tmp_path: Path) -> None:
    journal(tmp_path).write(order(1))
    file_of(tmp_path, 1).with_suffix(".77.draft").write_bytes(b"half")
    assert journal(tmp_path).load() == [order(1)]


def test_a_folder_that_cannot_be_written_raises(tmp_path: Path) -> None:
    (tmp_path / "emergency").write_bytes(b"a file")
    with pytest.raises(OSError, match="emergency"):
        journal(tmp_path).write(order(1))


def test_an_order_whose_name_is_not_durable_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(tmp_path).write(order(1))

    sync = os.fsync

    def fail_for_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    with pytest.raises(OSError, match="Input/output"):
        journal(tmp_path).write(order(1), order(2))
    assert journal(tmp_path).load() == [order(1)]
