"""Policies on disk: a separate file, whose problems don't affect the switches' file."""

import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given

from controlplane.dataplane.storage.saved_policies import POLICIES, SavedPolicies
from controlplane.dataplane.storage.snapshot_file import PoliciesDisk
from controlplane.dataplane.tests.copies import (
    EPOCH,
    KEY,
    NOON,
    OTHER_EPOCH,
    POLICY,
    SAVED,
    SAVED_POLICIES,
    disk,
    policies_disk,
    saved_policies,
)

LATER = NOON + timedelta(hours=1)
NEWER = SAVED_POLICIES.policies.with_changes(12, [POLICY._replace(version=12, text=b"{}")], LATER)


@given(saved_policies)
def test_whatever_is_saved_is_loaded_again(saved: SavedPolicies) -> None:
    with tempfile.TemporaryDirectory() as folder:
        PoliciesDisk(Path(folder), KEY).save(saved)

        assert PoliciesDisk(Path(folder), KEY).load() == saved


def test_policies_and_switches_are_in_files_apart(tmp_path: Path) -> None:
    disk(tmp_path).save(SAVED)
    before = (tmp_path / "current").read_bytes()

    policies_disk(tmp_path).save(SAVED_POLICIES)

    assert (tmp_path / "current").read_bytes() == before
    assert b"oracle" not in before
    assert disk(tmp_path).load() == SAVED
    assert policies_disk(tmp_path).load() == SAVED_POLICIES


def test_policies_that_are_too_many_keep_no_switch_from_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too large"):
        policies_disk(tmp_path, largest_bytes=100).save(SAVED_POLICIES)

    disk(tmp_path).save(SAVED)

    assert disk(tmp_path).load() == SAVED


def test_a_damaged_file_is_refused_and_the_one_before_taken(tmp_path: Path) -> None:
    writer = policies_disk(tmp_path)
    writer.save(SAVED_POLICIES)
    writer.save(replace(SAVED_POLICIES, policies=NEWER))
    text = (tmp_path / "policies").read_bytes()
    (tmp_path / "policies").write_bytes(text.replace(b'"version":12', b'"version":13'))

    assert policies_disk(tmp_path).load() == SAVED_POLICIES


def test_a_file_of_switches_is_none_of_policies(tmp_path: Path) -> None:
    disk(tmp_path).save(SAVED)

    (tmp_path / "current").rename(tmp_path / "policies")

    assert policies_disk(tmp_path).load() is None


def test_an_odd_cause_with_a_right_signature_is_refused(tmp_path: Path) -> None:
    odd = replace(SAVED_POLICIES.causes[0], level=7)
    path = tmp_path / "policies"
    path.write_bytes(POLICIES.sign(replace(SAVED_POLICIES, causes=(odd,)), KEY))
    path.chmod(0o600)

    assert policies_disk(tmp_path).load() is None


def test_the_same_policies_told_later_are_not_written_again(tmp_path: Path) -> None:
    policies_disk(tmp_path).save(SAVED_POLICIES)
    before = (tmp_path / "policies").stat()

    policies_disk(tmp_path).save(replace(SAVED_POLICIES, confirmed_at=LATER))

    after = (tmp_path / "policies").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_of_two_processes_the_newer_policies_and_causes_stay() -> None:
    one = replace(SAVED_POLICIES, policies=NEWER, revision=2, causes=())

    result = PoliciesDisk.merge(one, SAVED_POLICIES)

    assert (result.policies, result.causes) == (NEWER, SAVED_POLICIES.causes)
    assert PoliciesDisk.merge(SAVED_POLICIES, one).policies == NEWER


def test_of_a_version_given_twice_the_later_one_stays() -> None:
    again = replace(SAVED_POLICIES.policies, by_caller={}, changed_at=LATER)

    result = PoliciesDisk.merge(SAVED_POLICIES, replace(SAVED_POLICIES, policies=again))

    assert result.policies == again


def test_an_epoch_that_was_left_does_not_come_back() -> None:
    begun = SavedPolicies(
        policies=replace(SAVED_POLICIES.policies, epoch=OTHER_EPOCH, version=1),
        revision=0,
        causes=(),
        left_epochs=frozenset({EPOCH}),
        confirmed_at=NOON,
    )
    present = replace(SAVED_POLICIES, left_epochs=frozenset())

    assert PoliciesDisk.merge(present, begun) == begun
    assert PoliciesDisk.merge(begun, replace(present, confirmed_at=LATER)) == begun
