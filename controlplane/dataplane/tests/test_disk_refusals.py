"""Invalid files on disk are refused and logged, and the previous copy is used."""

import hmac
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.dataplane.storage.saved_snapshot import STATE
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk, signing_key
from controlplane.dataplane.tests.copies import EPOCH, KEY, SAVED, disk, version

WHOLE = STATE.sign(SAVED, KEY)
FIRST_LINE = WHOLE.index(b"\n") + 1


def put(folder: Path, content: bytes, name: str = "current") -> Path:
    path = folder / name
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def signed(document: Any, form: bytes = b"1", key: bytes = KEY) -> bytes:
    """Return a validly signed file with any document, in the canonical form."""
    rest = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return b"switchgear-copy %b %b\n%b" % (
        form,
        hmac.digest(key, rest, "sha256").hex().encode(),
        rest,
    )


def refusal(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert isinstance(record.msg, dict)
    assert record.msg["event"] == "dataplane.copy_refused"
    return record.msg


def assert_refused(folder: Path, caplog: pytest.LogCaptureFixture, why: str) -> None:
    """Assert that `current` is refused for that reason, and the previous copy is loaded."""
    put(folder, STATE.sign(version(16), KEY), "previous")
    assert disk(folder).load() == version(16)
    reason = refusal(caplog)
    assert reason["file"] == str(folder / "current")
    assert why in reason["why"]


def test_unaltered_file_is_the_baseline_of_all_that_follows(tmp_path: Path) -> None:
    put(tmp_path, WHOLE)
    put(tmp_path, signed(json.loads(WHOLE[FIRST_LINE:])), "previous")

    assert disk(tmp_path).load() == SAVED
    (tmp_path / "current").unlink()
    assert disk(tmp_path).load() == SAVED


@pytest.mark.parametrize(
    ("length", "why"),
    [
        (0, "not a copy"),
        (7, "not a copy"),
        (len("switchgear-copy"), "format"),
        (len("switchgear-copy 1"), "signature"),
        (len("switchgear-copy 1 0123"), "signature"),
        (FIRST_LINE - 1, "signature"),
        (FIRST_LINE, "signature"),
        (FIRST_LINE + 1, "signature"),
        ((FIRST_LINE + len(WHOLE)) // 2, "signature"),
        (len(WHOLE) - 1, "signature"),
    ],
)
def test_truncated_file_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, length: int, why: str
) -> None:
    put(tmp_path, WHOLE[:length])

    assert_refused(tmp_path, caplog, why)


@given(at=st.integers(0, len(WHOLE) - 1), flip=st.integers(1, 255))
def test_any_altered_byte_is_refused(at: int, flip: int) -> None:
    altered = bytearray(WHOLE)
    altered[at] ^= flip
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder), bytes(altered))

        assert disk(Path(folder)).load() is None


@given(at=st.integers(0, len(WHOLE)), more=st.binary(min_size=1, max_size=5))
def test_anything_put_in_is_refused(at: int, more: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder), WHOLE[:at] + more + WHOLE[at:])

        assert disk(Path(folder)).load() is None


@pytest.mark.parametrize("key", [signing_key("another secret"), b"", KEY[:-1]])
def test_file_signed_with_another_key_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: bytes
) -> None:
    put(tmp_path, STATE.sign(SAVED, key))

    assert_refused(tmp_path, caplog, "signature")


def test_file_signed_with_the_key_of_before_is_taken_and_signed_anew(tmp_path: Path) -> None:
    before = signing_key("another secret")
    put(tmp_path, STATE.sign(SAVED, before))
    turned = SnapshotDisk(tmp_path, KEY, older_keys=[signing_key("older still"), before])

    assert turned.load() == SAVED
    assert SnapshotDisk(tmp_path, KEY).load() is None

    turned.save(SAVED)

    assert SnapshotDisk(tmp_path, KEY).load() == SAVED


def test_file_of_another_format_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, signed(json.loads(WHOLE[FIRST_LINE:]), form=b"2"))

    assert_refused(tmp_path, caplog, "format")


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(WHOLE[FIRST_LINE:])
    change(document)
    return signed(document)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another version of the schema": lambda it: it["snapshot"].update(schema=2),
    "no snapshot": lambda it: it.pop("snapshot"),
    "no tokens": lambda it: it.pop("tokens"),
    "a part too many": lambda it: it.update(more=1),
    "a part of the snapshot too many": lambda it: it["snapshot"].update(more=1),
    "a part of a switch too many": lambda it: it["snapshot"]["switches"][0].update(more=1),
    "another pace": lambda it: it["snapshot"].update(poll_seconds=1),
    "a version that is text": lambda it: it["snapshot"].update(version="17"),
    "a version that is true": lambda it: it["snapshot"].update(version=True),
    "a version below zero": lambda it: it["snapshot"].update(version=-1),
    "a revision with decimals": lambda it: it.update(revision=4.0),
    "no registrations": lambda it: it.update(registrations=None),
    "an epoch that is none": lambda it: it["snapshot"].update(epoch="8b4ccf29"),
    "an epoch written otherwise": lambda it: it["snapshot"].update(epoch=str(EPOCH).upper()),
    "an epoch that was left": lambda it: it.update(left_epochs=[str(EPOCH)]),
    "a switch twice": lambda it: it["snapshot"]["switches"].append(it["snapshot"]["switches"][0]),
    "an id of another switch": lambda it: it["snapshot"]["switches"][0].update(id="segment:x"),
    "a share over 100": lambda it: it["snapshot"]["switches"][0].update(allow_percent=100.01),
    "a share too fine": lambda it: it["snapshot"]["switches"][0].update(allow_percent=0.001),
    "a share that is text": lambda it: it["snapshot"]["switches"][0].update(allow_percent="x"),
    "a state that is not": lambda it: it["snapshot"]["switches"][0].update(state="engaged"),
    "a reason that is none": lambda it: it["snapshot"]["switches"][0].update(reason=None),
    "a time elsewhere": lambda it: it.update(confirmed_at="2026-11-21T12:00:00.000000+09:00"),
    "a time that is none": lambda it: it.update(confirmed_at=1),
    "known that is text": lambda it: it.update(known="segment:finance"),
    "known of numbers": lambda it: it.update(known=[1]),
    "known out of order": lambda it: it["known"].reverse(),
    "a short digest": lambda it: it["tokens"][0].update(digest="00"),
    "a digest that is none": lambda it: it["tokens"][0].update(digest="x" * 64),
    "a prefix beyond ASCII": lambda it: it["tokens"][0].update(prefix="é"),
    "an end that is text": lambda it: it["tokens"][0].update(expires_at="never"),
    "a token twice": lambda it: it["tokens"].append(it["tokens"][0]),
    "a list for the snapshot": lambda it: it.update(snapshot=[]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_signed_file_of_another_schema_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Callable[[dict[str, Any]], object]
) -> None:
    put(tmp_path, changed(change))

    assert_refused(tmp_path, caplog, "schema")


@pytest.mark.parametrize("document", [None, 1, "text", [], {}])
def test_signed_file_of_no_schema_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, document: Any
) -> None:
    put(tmp_path, signed(document))

    assert_refused(tmp_path, caplog, "schema")


def test_signed_file_that_is_no_json_or_not_canonical_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spaced = json.dumps(json.loads(WHOLE[FIRST_LINE:])).encode()
    for rest in (b"", b"{", b"\xff", b"NaN", b"[" * 5000, spaced):
        caplog.clear()
        head = b"switchgear-copy 1 " + hmac.digest(KEY, rest, "sha256").hex().encode()
        put(tmp_path, head + b"\n" + rest)

        assert_refused(tmp_path, caplog, "schema")


def test_too_large_file_is_refused_before_it_is_read_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, WHOLE)
    os.truncate(tmp_path / "current", 1 << 40)  # Sparse: takes no disk space.

    assert_refused(tmp_path, caplog, "larger than")


def test_file_just_large_enough_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, WHOLE)

    assert SnapshotDisk(tmp_path, KEY, largest_bytes=len(WHOLE)).load() is not None
    assert SnapshotDisk(tmp_path, KEY, largest_bytes=len(WHOLE) - 1).load() is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666])
def test_file_that_others_may_touch_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    put(tmp_path, WHOLE).chmod(mode)

    assert_refused(tmp_path, caplog, "chmod 600")


def test_symbolic_link_is_refused_and_replaced_but_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "dataplane"
    folder.mkdir()
    target = put(tmp_path, WHOLE, "elsewhere")
    (folder / "current").symlink_to(target)

    assert_refused(folder, caplog, "symbolic link")
    disk(folder).save(version(18))
    assert not (folder / "current").is_symlink()
    assert target.read_bytes() == WHOLE


def test_link_where_the_draft_goes_is_not_written_through(tmp_path: Path) -> None:
    folder = tmp_path / "dataplane"
    folder.mkdir()
    target = put(tmp_path, b"precious", "elsewhere")
    (folder / "draft").symlink_to(target)

    disk(folder).save(SAVED)

    assert target.read_bytes() == b"precious"
    assert disk(folder).load() == SAVED


@pytest.mark.timeout(10)
def test_pipe_or_folder_in_its_place_is_refused_without_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(tmp_path / "current", 0o600)
    assert_refused(tmp_path, caplog, "not a regular file")

    caplog.clear()
    (tmp_path / "current").unlink()
    (tmp_path / "current").mkdir()
    assert_refused(tmp_path, caplog, "directory")


def test_both_refused_is_none_and_both_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, WHOLE[:-1])
    put(tmp_path, b"", "previous")

    assert disk(tmp_path).load() is None
    named = [record.msg["file"] for record in caplog.records if record.levelname == "ERROR"]
    assert named == [str(tmp_path / "current"), str(tmp_path / "previous")]


def test_refused_file_never_takes_the_place_of_a_good_one(tmp_path: Path) -> None:
    put(tmp_path, STATE.sign(version(16), KEY), "previous")
    put(tmp_path, WHOLE[:-1])

    disk(tmp_path).save(version(18))

    assert disk(tmp_path).load() == version(18)
    (tmp_path / "current").unlink()
    assert disk(tmp_path).load() == version(16)


def test_file_altered_behind_the_writer_is_noticed_at_the_next_save(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = disk(tmp_path)
    writer.save(version(17))
    put(tmp_path, WHOLE[:-1])

    writer.save(version(18))

    assert "signature" in refusal(caplog)["why"]
    assert disk(tmp_path).load() == version(18)
