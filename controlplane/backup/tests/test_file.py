"""A backup file is complete or absent, private, and detects truncation and changes."""

import os
import stat
import tarfile
from pathlib import Path

import pytest

from controlplane.backup import file
from controlplane.backup.manifest import Manifest
from controlplane.core.errors import Conflict, InvalidInput

SAID = Manifest(
    format=1,
    product="0.1.0",
    installation="test",
    taken_at="2026-11-21T12:00:00+00:00",
    postgres=18,
    epoch="e",
    version=7,
    audit_rows=3,
    audit_head=3,
    audit_hash="0" * 64,
    migrations=("core.0001_initial",),
    key="k",
)
CONTENT = os.urandom(1000) * 700


@pytest.fixture
def backup(tmp_path):
    file.write(tmp_path / "one", lambda take: take(CONTENT) or SAID)
    return tmp_path / "one"


def refused(path, words):
    with pytest.raises(InvalidInput) as caught:
        file.read_manifest(path)
    assert words in str(caught.value)


def test_it_can_be_read_by_tar_and_by_its_owner_alone(backup):
    with tarfile.open(backup) as archive:
        assert archive.getnames() == ["database.dump", "manifest.json"]
        assert archive.extractfile("database.dump").read() == CONTENT
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    manifest = file.read_manifest(backup)
    assert (manifest.version, manifest.size) == (7, len(CONTENT))
    assert os.listdir(backup.parent) == ["one"]


@pytest.mark.parametrize("left", [0, 100, 512, 5000, len(CONTENT) + 511, -1500])
def test_a_cut_file_is_refused_wherever_it_is_cut(backup, left):
    whole = backup.read_bytes()
    backup.write_bytes(whole[:left])

    refused(backup, "it is")


def test_a_changed_byte_of_the_dump_is_found(backup):
    content = bytearray(backup.read_bytes())
    content[300_000] ^= 1
    backup.write_bytes(content)

    refused(backup, "incomplete or was changed")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (b'"format": 1', b'"format": 9', "9 is not supported"),
        (b'"version"', b'"verzion"', "be read"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(backup, before, after, words):
    backup.write_bytes(backup.read_bytes().replace(before, after))

    refused(backup, words)


def test_other_files_and_none_are_refused(tmp_path):
    (tmp_path / "text").write_text("no tar at all\n" * 1000)

    refused(tmp_path / "text", "not a backup")
    refused(tmp_path / "absent", "No such file")


def test_what_exists_is_not_written_over(backup):
    before = backup.read_bytes()

    with pytest.raises(Conflict, match="exists"):
        file.write(backup, lambda take: SAID)

    assert backup.read_bytes() == before


def test_a_failure_leaves_nothing(tmp_path):
    def fail(take):
        take(CONTENT)
        raise Conflict("no")

    with pytest.raises(Conflict):
        file.write(tmp_path / "one", fail)

    assert not os.listdir(tmp_path)


def test_what_a_killed_run_left_beside_it_is_written_over(tmp_path):
    left: Path = tmp_path / "one.part"
    left.write_bytes(b"x" * 2_000_000)
    left.chmod(0o644)

    file.write(tmp_path / "one", lambda take: take(CONTENT) or SAID)

    assert file.read_manifest(tmp_path / "one").size == len(CONTENT)
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["one"]


def test_two_at_once_do_not_mix(tmp_path):
    def meanwhile(take):
        with pytest.raises(Conflict, match="being written"):
            file.write(tmp_path / "one", lambda take: SAID)
        take(CONTENT)
        return SAID

    file.write(tmp_path / "one", meanwhile)

    assert file.read_manifest(tmp_path / "one").size == len(CONTENT)
