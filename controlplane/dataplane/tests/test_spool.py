"""The spool keeps what it acknowledged, through crashes and a full disk, under stable numbers."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controlplane.dataplane.relay.spool import (
    BATCH,
    MAX_SEGMENT_BYTES,
    NOTES,
    REPORT,
    RESERVED_BYTES,
    Record,
    Spool,
    SpoolFull,
)

KIB = 1024


def make_record(number: int = 1, size: int = 0, kind: bytes = REPORT) -> Record:
    return Record(kind, b'{"n":%d,"x":"%b"}' % (number, b"x" * size))


def claim(root: Path, max_bytes: int = 64 * KIB) -> Spool:
    return Spool.claim(root, max_bytes)


def take_all(spool: Spool) -> dict[int, list[bytes]]:
    """Return the contents of all batches by number."""
    spool.end_batch()
    found = {}
    for seq in spool.list_ended():
        batch = spool.read(seq)
        found[seq] = [*batch.reports, *batch.notes, *batch.batches]
    return found


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("*/*.batch"))


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """Make writes beyond `size` bytes of a file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_records_are_read_by_kind_and_removed_once_accepted(tmp_path: Path) -> None:
    spool = claim(tmp_path)
    records = [make_record(1), make_record(2, kind=NOTES), make_record(3, kind=BATCH)]
    spool.append(records)
    assert spool.list_ended() == []
    spool.end_batch()

    (seq,) = spool.list_ended()
    batch = spool.read(seq)
    found = [batch.reports, batch.notes, batch.batches]
    assert found == [[record.content] for record in records]
    spool.remove(seq)
    assert (spool.list_ended(), spool.size_bytes, spool.oldest_seconds()) == ([], 0, 0)


def test_number_rises_although_all_was_sent_and_the_process_began_anew(tmp_path: Path) -> None:
    seen = []
    for number in range(4):
        spool = claim(tmp_path)
        spool.append([make_record(number)])
        seen += take_all(spool)
        spool.remove(seen[-1])
        spool.close()

    assert seen == [1, 2, 3, 4]
    assert len(files(tmp_path)) == 1


def test_next_process_continues_with_the_same_id_and_batches(tmp_path: Path) -> None:
    first = claim(tmp_path)
    first.append([make_record(1)])
    sent = take_all(first)
    first.append([make_record(2)])
    first.close()

    second = claim(tmp_path)
    assert second.process == first.process
    assert take_all(second) == {**sent, 2: [make_record(2).content]}


def test_each_process_has_a_spool_of_its_own(tmp_path: Path) -> None:
    spools = [claim(tmp_path) for _ in range(3)]
    assert len({spool.process for spool in spools}) == 3
    assert list(Spool.claim_free(tmp_path)) == []

    spools[1].close()
    assert [spool.process for spool in Spool.claim_free(tmp_path)] == [spools[1].process]


def test_full_spool_refuses_and_takes_notes_into_the_reserve(tmp_path: Path) -> None:
    spool = claim(tmp_path, 2 * KIB)
    spool.append([make_record(1, 1500)])
    with pytest.raises(SpoolFull):
        spool.append([make_record(2, 1000)])
    spool.append([make_record(3, 1000, NOTES)], reserved=True)
    with pytest.raises(SpoolFull):
        spool.append([make_record(4, RESERVED_BYTES, NOTES)], reserved=True)

    (seq,) = take_all(spool)
    spool.remove(seq)
    spool.append([make_record(2, 1000)])
    assert take_all(spool) == {seq + 1: [make_record(2, 1000).content]}


def test_notes_end_their_batch(tmp_path: Path) -> None:
    spool = claim(tmp_path)
    spool.append([make_record(1, 100)])
    spool.append([make_record(2, 100, NOTES)], reserved=True)
    spool.append([make_record(3, 100, NOTES)], reserved=True)

    assert [len(spool.read(seq).notes) for seq in spool.list_ended()] == [1, 1]


def test_large_records_begin_a_new_batch(tmp_path: Path) -> None:
    spool = claim(tmp_path, 8 * MAX_SEGMENT_BYTES)
    for number in range(3):
        spool.append([make_record(number, MAX_SEGMENT_BYTES * 2 // 5)])
    spool.append([make_record(3, 2 * MAX_SEGMENT_BYTES)])

    assert [len(contents) for contents in take_all(spool).values()] == [2, 1, 1]


def test_many_records_begin_a_new_batch(tmp_path: Path) -> None:
    spool = claim(tmp_path, KIB * KIB)
    for _ in range(6):
        spool.append([make_record()] * 100)

    assert [len(contents) for contents in take_all(spool).values()] == [500, 100]


def test_failed_write_leaves_nothing_and_the_next_one_succeeds(tmp_path: Path) -> None:
    spool = claim(tmp_path)
    spool.append([make_record(1)])
    with limited_file_size(100), pytest.raises(OSError, match="File too large"):
        spool.append([make_record(2, 200)])
    spool.append([make_record(3)])
    spool.close()

    again = claim(tmp_path)
    assert take_all(again) == {1: [make_record(1).content, make_record(3).content]}


@pytest.mark.parametrize("rest", [b'report {"n":2', b"report", b"\x00" * 50, b"other {}\n"])
def test_record_that_a_crash_cut_off_is_dropped(tmp_path: Path, rest: bytes) -> None:
    spool = claim(tmp_path)
    spool.append([make_record(1)])
    spool.close()
    (path,) = tmp_path.glob("*/*.batch")
    with open(path, "ab") as file:
        file.write(rest)

    again = claim(tmp_path)
    again.append([make_record(3)])
    assert take_all(again) == {1: [make_record(1).content], 2: [make_record(3).content]}


WRITER = """
import sys
from pathlib import Path
from controlplane.dataplane.relay.spool import REPORT, Record, Spool
spool = Spool.claim(Path(sys.argv[1]))
number = 0
while True:
    spool.append([Record(REPORT, b'{"n":%d}' % number)])
    print(number, flush=True)
    number += 1
    if number % 7 == 0:
        spool.end_batch()
"""


@pytest.mark.services
def test_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        acknowledged = [process.stdout.readline() for _ in range(100)]
        process.kill()
        acknowledged += process.stdout.readlines()

    stored = [content for contents in take_all(claim(tmp_path)).values() for content in contents]
    numbers = [b'{"n":%d}' % int(line) for line in acknowledged]
    assert stored[: len(numbers)] == numbers
    assert len(stored) - len(numbers) <= 1


def test_files_are_private(tmp_path: Path) -> None:
    claim(tmp_path).append([make_record()])

    for path in tmp_path.rglob("*"):
        assert not os.stat(path).st_mode & 0o077, path


class SpoolModel(RuleBasedStateMachine):
    """A spool against a list of batches; a restart at any moment changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.spool = claim(self.root, 2 * KIB)
        self.batches: dict[int, list[bytes]] = {}
        self.open: list[bytes] = []
        self.number = 0
        self.used: set[int] = set()

    def teardown(self) -> None:
        self.spool.close()
        self.folder.cleanup()

    @rule(sizes=st.lists(st.integers(0, 600), min_size=1, max_size=3))
    def append(self, sizes: list[int]) -> None:
        records = []
        for size in sizes:
            self.number += 1
            records.append(make_record(self.number, size))
        try:
            self.spool.append(records)
        except SpoolFull:
            used = sum(len(b"report %b\n" % each) for each in self.everything())
            more = sum(len(b"report %b\n" % record.content) for record in records)
            assert used + more > 2 * KIB
        else:
            self.open += [record.content for record in records]

    @rule()
    def end(self) -> None:
        self.spool.end_batch()
        self.settle()

    @rule(failing=st.integers(1, 300))
    def append_to_a_full_disk(self, failing: int) -> None:
        with limited_file_size(1), pytest.raises((OSError, SpoolFull)):
            self.spool.append([make_record(0, failing)])

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def accept(self, data: st.DataObject) -> None:
        seq = data.draw(st.sampled_from(sorted(self.batches)))
        self.spool.remove(seq)
        del self.batches[seq]

    @rule()
    def restart(self) -> None:
        process = self.spool.process
        self.spool.close()
        self.spool = claim(self.root, 2 * KIB)
        assert self.spool.process == process
        self.settle()

    def settle(self) -> None:
        """Move the records of the open batch to the batch that has just ended."""
        new = [seq for seq in self.spool.list_ended() if seq not in self.batches]
        if self.open:
            (seq,) = new
            assert seq not in self.used
            self.used.add(seq)
            self.batches[seq], self.open = self.open, []
        else:
            assert not new

    def everything(self) -> list[bytes]:
        return [each for contents in self.batches.values() for each in contents] + self.open

    @invariant()
    def holds_what_was_not_accepted(self) -> None:
        assert {seq: self.spool.read(seq).reports for seq in self.spool.list_ended()} == (
            self.batches
        )


TestSpoolModel = SpoolModel.TestCase
TestSpoolModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
