"""The signed snapshot as a file in a directory or at a URL, for clients without a data plane."""

import asyncio
import contextlib
import itertools
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from controlplane.core.signatures import SigningKey, verify
from controlplane.dataplane.metrics import process_metrics
from controlplane.dataplane.published_file import locations
from controlplane.dataplane.published_file.content import (
    Decision,
    FileHead,
    InvalidPublishedFile,
    decide,
    parse_head,
    render_file,
)
from controlplane.dataplane.published_file.locations import FolderLocation, UrlLocation
from controlplane.dataplane.published_file.publisher import Publisher
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.object_store import ObjectStore, object_store
from controlplane.dataplane.tests.served import EPOCH, copy
from controlplane.environment.published_file import PublishedFileSettings
from switches.snapshot import SnapshotVersion
from switchgear.console.signatures import make_parser
from switchgear.evaluation.signed_snapshot import parse_published_file

KEY = SigningKey.generate()
KEYS = {KEY.public.id: KEY.public}
OTHER_EPOCH = UUID(int=7)
AT = datetime(2026, 11, 28, 12, tzinfo=UTC)


def head(version: int, *, epoch: UUID = EPOCH, confirmed_at: datetime = AT, published_at=AT):
    return FileHead(SnapshotVersion(epoch, version, published_at), "signature", confirmed_at)


@pytest.mark.parametrize(
    ("present", "decision"),
    [
        (None, Decision.WRITE),
        (head(6), Decision.WRITE),
        (head(8), Decision.REFUSE),
        (head(7), Decision.KEEP),
        (head(7, confirmed_at=AT - timedelta(seconds=14)), Decision.KEEP),
        (head(7, confirmed_at=AT - timedelta(seconds=15)), Decision.WRITE),
        (head(7, confirmed_at=AT + timedelta(seconds=100)), Decision.KEEP),
        (replace(head(7), signature="by another key"), Decision.WRITE),
        (head(9, epoch=OTHER_EPOCH), Decision.WRITE),
        (head(1, epoch=OTHER_EPOCH, published_at=AT + timedelta(seconds=1)), Decision.REFUSE),
        (head(9, epoch=UUID(int=8), published_at=AT + timedelta(seconds=1)), Decision.WRITE),
    ],
    ids=[
        *("none", "older", "newer", "same", "fresh", "stale", "later", "signature"),
        *("epoch before", "epoch later", "left epoch"),
    ],
)
def test_newer_or_fresh_file_is_not_replaced(present, decision):
    assert decide(head(7), present, {UUID(int=8)}) is decision


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"snapshot":"{}","signature":"","confirmed_at":"2026-11-28T12:00:00Z"}',
        b'{"snapshot":7,"signature":"","confirmed_at":"2026-11-28T12:00:00Z"}',
        render_file(head(7), b'{"epoch":"x","version":7}'),
    ],
)
def test_other_content_is_no_published_file(content):
    with pytest.raises(InvalidPublishedFile):
        parse_head(content)


def signed_state(version: int, *switches: str, age_seconds: float = 0.0) -> State:
    state = State()
    state.install_keys([KEY], [])
    publish(state, version, *switches, age_seconds=age_seconds)
    return state


def publish(state: State, version: int, *switches: str, age_seconds: float = 0.0) -> None:
    state.install_copy(copy(version, *switches), state.now() - age_seconds)


@contextlib.asynccontextmanager
async def publishing(state: State, location):
    work = Publisher(state, location, interval_seconds=0.1, retry_seconds=0.05)
    task = asyncio.create_task(work.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_until(condition, seconds: float = 10.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def version_in(content: bytes) -> int:
    return parse_head(content).publication.version


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_each_version_is_written_and_the_client_accepts_it(folder):
    file = folder / "snapshot.json"

    async def scenario():
        state = signed_state(17, "feature:chat")
        async with publishing(state, FolderLocation(folder)):
            await wait_until(file.exists)
            publish(state, 18, "feature:chat", "feature:search")
            await wait_until(lambda: version_in(file.read_bytes()) == 18)

    asyncio.run(scenario())

    fields = json.loads(file.read_bytes())
    assert fields.keys() == {"snapshot", "signature", "confirmed_at"}
    verify(fields["signature"], fields["snapshot"].encode(), KEYS)
    theirs = parse_published_file(file.read_bytes())
    snapshot = make_parser([str(KEY.public)])(theirs.document, theirs.signature, {})
    assert snapshot.entries.keys() == {"feature:chat", "feature:search"}
    assert file.stat().st_mode & 0o777 == 0o644
    assert not (folder / ".snapshot.json.new").exists()


def test_time_of_confirmation_moves_without_a_new_version(folder):
    file = folder / "snapshot.json"

    def confirmed_at() -> datetime:
        return parse_head(file.read_bytes()).confirmed_at

    async def scenario():
        state = signed_state(17, age_seconds=100.0)
        async with publishing(state, FolderLocation(folder)):
            await wait_until(file.exists)
            before = confirmed_at()
            assert 99 < (state.wall() - before).total_seconds() < 110
            state.confirm(state.now() - 90)
            await wait_until(lambda: state.file_updates["keep"] >= 2)
            assert confirmed_at() == before
            state.confirm(state.now())
            await wait_until(lambda: confirmed_at() - before > timedelta(seconds=90))

    asyncio.run(scenario())


def test_several_processes_leave_the_newest_version(folder):
    file = folder / "snapshot.json"

    async def scenario():
        ahead, behind = signed_state(20), signed_state(17)
        async with publishing(ahead, FolderLocation(folder)):
            await wait_until(file.exists)
            async with publishing(behind, FolderLocation(folder)):
                await wait_until(lambda: behind.file_updates["fail"] >= 2)
                assert version_in(file.read_bytes()) == 20
                publish(behind, 21)
                await wait_until(lambda: version_in(file.read_bytes()) == 21)

    asyncio.run(scenario())


@pytest.mark.parametrize("content", [b"", b"rubbish", b"{}"])
def test_damaged_file_is_replaced(folder, content):
    file = folder / "snapshot.json"
    file.write_bytes(content)
    (folder / ".snapshot.json.new").write_bytes(b"half")

    async def scenario():
        async with publishing(signed_state(17), FolderLocation(folder)):
            await wait_until(lambda: file.read_bytes() != content)

    asyncio.run(scenario())

    assert version_in(file.read_bytes()) == 17


def test_failure_of_a_minute_degrades_and_the_next_success_ends_that(folder):
    missing = folder / "missing"
    now = itertools.count(100.0, 0.1)

    async def scenario():
        state = signed_state(17)
        clock = iter(now)
        state._monotonic = lambda: next(clock)
        async with publishing(state, FolderLocation(missing)):
            await wait_until(lambda: state.file_updates["fail"] >= 2)
            assert state.publishing is None
            clock = itertools.count(1000.0, 0.1)
            await wait_until(lambda: state.publishing is not None)
            cause = state.publishing
            assert cause is not None
            assert cause in state.own_causes()
            assert f"can't be published to {missing}: No such file or directory" in cause.text
            assert metric(state, "switchgear_dataplane_file_current") == 0

            missing.mkdir()
            clock = itertools.count(2000.0, 0.1)
            await wait_until(lambda: state.publishing is None)
            assert metric(state, "switchgear_dataplane_file_current") == 1
            assert (missing / "snapshot.json").exists()

    asyncio.run(scenario())


def metric(state: State, name: str) -> float:
    [found] = [each for each in process_metrics(state) if each.name == name]
    return found.samples[0].value


def test_snapshot_without_a_signature_is_not_published(folder):
    async def scenario():
        state = State()
        state.install_copy(copy(17), state.now())
        async with publishing(state, FolderLocation(folder)):
            await wait_until(lambda: state.file_updates["fail"])

    asyncio.run(scenario())

    assert os.listdir(folder) == []


def url_location(
    there: ObjectStore, *, networks: tuple[str, ...] = ("127.0.0.0/8",)
) -> UrlLocation:
    return UrlLocation(PublishedFileSettings(url=there.url, token="a-token", networks=networks))


def test_object_is_put_with_the_token_and_read_before():

    async def scenario(there: ObjectStore):
        state = signed_state(17)
        async with publishing(state, url_location(there)):
            await wait_until(lambda: there.content is not None)
            assert version_in(there.content or b"") == 17
            await wait_until(lambda: ("GET", 304) in [each[:2] for each in there.asked])
            publish(state, 18)
            await wait_until(lambda: version_in(there.content or b"") == 18)
        assert [each[0] for each in there.asked[:2]] == ["GET", "PUT"]
        assert {each[2].get("Authorization") for each in there.asked} == {"Bearer a-token"}
        puts = [headers for method, _, headers in there.asked if method == "PUT"]
        assert len(puts) == 2
        assert puts[0]["Content-Type"] == "application/json"

        there.content = render_file(head(99), b'{"epoch":"%b","version":99,"published_at":"%b"}' % (
            str(EPOCH).encode(), AT.isoformat().encode()
        ))  # fmt: skip
        behind = signed_state(18)
        async with publishing(behind, url_location(there)):
            await wait_until(lambda: behind.file_updates["fail"])
        assert version_in(there.content) == 99

    with object_store() as there:
        asyncio.run(scenario(there))


def failure(there: ObjectStore, location: UrlLocation) -> str:
    with pytest.raises(locations.PublishFailed) as raised:
        asyncio.run(location.update(lambda _present: b"{}"))
    assert "hunter2" not in str(raised.value) + location.name
    return str(raised.value)


@pytest.mark.parametrize("status", [302, 401, 403, 500])
def test_refused_put_is_a_failure_and_no_redirect_is_followed(status):
    with object_store() as there:
        there.status = status
        assert failure(there, url_location(there)) == f"PUT was answered with status {status}"


def test_object_may_not_be_read_and_is_written_all_the_same():
    with object_store() as there:
        location = url_location(there)
        asyncio.run(location.update(lambda present: b"{}" if present is None else None))
        assert there.content == b"{}"


def test_address_outside_of_the_networks_is_not_called():
    with object_store() as there:
        assert "SNAPSHOT_PUBLISH_ALLOW" in failure(
            there, url_location(there, networks=("10.0.0.0/8",))
        )
        assert there.asked == []


def test_server_that_is_away_is_a_failure():
    with object_store() as there:
        location = url_location(there)
    assert failure(there, location) == "the connection failed (ConnectError)"
