"""Damaged append-only files: the commands kept, and the copies of the old files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controlplane.supervisor import redis_files

NOW = datetime(2026, 11, 25, 17, 0, tzinfo=UTC)
SELECT = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
DUMP = b"REDIS0009\xfa" + SELECT + b"\xff12345678"


def added(number: int) -> bytes:
    value = b"letter %04d" % number
    return b"*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$%d\r\n%b\r\n" % (len(value), value)


LETTERS = [added(number) for number in range(100)]
WHOLE = SELECT + b"".join(LETTERS)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "redis"
    made.mkdir()
    return made


def find_damaged_copy(directory: Path) -> Path:
    (kept,) = (directory.parent / "redis-damaged").iterdir()
    return kept


def test_a_block_of_zeros_costs_only_the_commands_it_touches(directory: Path) -> None:
    at = WHOLE.index(LETTERS[40]) + 10
    damaged = WHOLE[:at] + bytes(80) + WHOLE[at + 80 :]
    (directory / "appendonly.aof").write_bytes(damaged)

    report = redis_files.repair(directory, 1, NOW)

    left = (directory / "appendonly.aof").read_bytes()
    assert left == SELECT + b"".join(LETTERS[:40] + LETTERS[43:])
    assert (find_damaged_copy(directory) / "appendonly.aof").read_bytes() == damaged
    assert str(find_damaged_copy(directory)) in report


@pytest.mark.parametrize("cut", [1, 5, 20, 34])
def test_a_file_that_breaks_off_keeps_all_before(directory: Path, cut: int) -> None:
    (directory / "appendonly.aof").write_bytes(WHOLE[:-cut])

    redis_files.repair(directory, 1, NOW)

    left = (directory / "appendonly.aof").read_bytes()
    assert left == SELECT + b"".join(LETTERS[:-1])


def test_a_transaction_without_an_end_does_not_swallow_what_follows(directory: Path) -> None:
    begun = b"*1\r\n$5\r\nMULTI\r\n" + LETTERS[0] + b"*1\r\n$4\r\nEX"
    (directory / "appendonly.aof").write_bytes(SELECT + begun + b"".join(LETTERS[1:]))

    redis_files.repair(directory, 1, NOW)

    left = (directory / "appendonly.aof").read_bytes()
    assert left == SELECT + b"".join(LETTERS)


def test_the_dump_at_the_beginning_is_kept_first_and_left_out_next(directory: Path) -> None:
    (directory / "appendonly.aof").write_bytes(DUMP + WHOLE[:-3])

    redis_files.repair(directory, 1, NOW)
    first = (directory / "appendonly.aof").read_bytes()
    redis_files.repair(directory, 2, NOW + timedelta(seconds=1))
    second = (directory / "appendonly.aof").read_bytes()

    assert first == DUMP + SELECT + b"".join(LETTERS[:-1])
    assert second == SELECT + b"".join(LETTERS[:-1])
    assert (find_damaged_copy(directory) / "appendonly.aof").read_bytes() == DUMP + WHOLE[:-3]


def test_files_in_parts_are_kept_in_parts_and_then_put_together(directory: Path) -> None:
    parts = directory / "appendonlydir"
    parts.mkdir()
    (parts / "appendonly.aof.manifest").write_bytes(b"file one")
    (parts / "appendonly.aof.1.base.rdb").write_bytes(DUMP)
    (parts / "appendonly.aof.9.incr.aof").write_bytes(SELECT + LETTERS[1] + b"\0\0")
    (parts / "appendonly.aof.10.incr.aof").write_bytes(b"#TS:1\r\n" + LETTERS[2])

    redis_files.repair(directory, 1, NOW)
    first = {path.name: path.read_bytes() for path in parts.iterdir()}
    redis_files.repair(directory, 2, NOW + timedelta(seconds=1))

    assert first == {
        "appendonly.aof.manifest": b"file one",
        "appendonly.aof.1.base.rdb": DUMP,
        "appendonly.aof.9.incr.aof": SELECT + LETTERS[1],
        "appendonly.aof.10.incr.aof": b"#TS:1\r\n" + LETTERS[2],
    }
    assert [path.name for path in directory.iterdir()] == ["appendonly.aof"]
    left = (directory / "appendonly.aof").read_bytes()
    assert left == SELECT + LETTERS[1] + b"#TS:1\r\n" + LETTERS[2]


def test_the_last_step_starts_empty(directory: Path) -> None:
    (directory / "appendonly.aof").write_bytes(WHOLE)
    redis_files.repair(directory, 1, NOW)

    report = redis_files.repair(directory, 3, NOW + timedelta(seconds=1))

    assert list(directory.iterdir()) == []
    assert (find_damaged_copy(directory) / "appendonly.aof").read_bytes() == WHOLE
    assert "starts empty" in report


def test_only_the_newest_damaged_files_are_kept(directory: Path) -> None:
    for number in range(redis_files.MAX_KEPT + 2):
        (directory / "appendonly.aof").write_bytes(LETTERS[number])
        redis_files.repair(directory, 1, NOW + timedelta(seconds=number))

    kept = sorted((directory.parent / "redis-damaged").iterdir())
    assert [path.joinpath("appendonly.aof").read_bytes() for path in kept] == LETTERS[2:7]


def test_a_disk_that_does_not_take_the_result_leaves_the_files_alone(directory: Path) -> None:
    (directory / "appendonly.aof").write_bytes(WHOLE + b"\0")
    (directory.parent / "redis-damaged").write_bytes(b"in the way")

    with pytest.raises(OSError, match="redis-damaged"):
        redis_files.repair(directory, 1, NOW)

    assert (directory / "appendonly.aof").read_bytes() == WHOLE + b"\0"
    assert not (directory.parent / "redis.new").exists()
