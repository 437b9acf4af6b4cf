"""A relay that restarts without its upstream answers from its disk, if that is unaltered."""

import stat
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay.bundle_disk import BundleDisk
from controlplane.dataplane.relay.bundle_keeper import BundleKeeper
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.signed_file import SignedDocument
from controlplane.dataplane.tests.lines import background, wait_until
from controlplane.dataplane.tests.served import BEARER, ask, copy, credential
from controlplane.dataplane.tests.upstreams import (
    KEY,
    OTHER_KEY,
    FakeUpstream,
    Relays,
    relays,
    version_of,
)

KEYS = {KEY.public.id: KEY.public}


@pytest.fixture
def region() -> Iterator[Relays]:
    with background() as loop, relays(loop) as made:
        yield made


@pytest.fixture
def upstream(region: Relays) -> FakeUpstream:
    return region.upstream("segment:finance")


@pytest.fixture
def folder(region: Relays, upstream: FakeUpstream, tmp_path: Path) -> Path:
    """The folder of a relay that was stopped, as its upstream was then."""
    folder = tmp_path / "snapshot"
    region.stop(region.start(upstream.url, folder=folder))
    upstream.stop()
    time.sleep(0.3)  # A write that had begun in a thread ends after the stop.
    return folder


def restart(region: Relays, upstream: FakeUpstream, folder: Path, **options: Any) -> Plane:
    return region.start(upstream.url, folder=folder, **options)


def test_it_answers_from_disk_with_an_honest_age(
    region: Relays, upstream: FakeUpstream, folder: Path
) -> None:
    saved_at = datetime.fromtimestamp((folder / "bundle").stat().st_mtime, UTC)
    began = time.monotonic()

    relay = restart(region, upstream, folder)

    assert time.monotonic() - began < 1
    answer = ask(relay, "GET", "/api/v1/snapshot", BEARER)
    assert answer.status_code == 200
    assert answer.json()["switches"][0]["id"] == "segment:finance"
    away = (datetime.now(UTC) - saved_at).total_seconds()
    assert float(answer.headers["Switchgear-Age"]) == pytest.approx(away, abs=1)
    assert ask(relay, "GET", "/health/ready/data").json()["source"] == "disk"
    assert relay.state.upstream is not None


def test_only_its_user_can_read_the_bundle(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "bundle").stat().st_mode) == 0o600


def test_the_restored_parts_are_sent_as_a_difference(
    region: Relays, upstream: FakeUpstream, folder: Path
) -> None:
    upstream.start()
    restart(region, upstream, folder)

    assert "tokens=" in upstream.requests[-1][1]["switchgear-bundle"]


def test_an_older_bundle_does_not_follow_the_restored_one(
    region: Relays, upstream: FakeUpstream, folder: Path
) -> None:
    upstream.state.published = None
    upstream.state.install_copy(copy(16), upstream.state.now())
    upstream.start()

    relay = restart(region, upstream, folder)

    wait_until(lambda: relay.state.bundles["older"] == 1, 5)
    assert version_of(relay) == 17


def replace_last_byte(content: bytes) -> bytes:
    return content[:-1] + b"]"


def alter_the_version(content: bytes) -> bytes:
    return content.replace(b'\\"version\\":17', b'\\"version\\":18', 1)


def truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize("alter", [replace_last_byte, alter_the_version, truncate])
def test_an_altered_file_is_refused(
    alter: Callable[[bytes], bytes], region: Relays, upstream: FakeUpstream, folder: Path
) -> None:
    for name in ("bundle", "bundle-previous"):
        if (path := folder / name).exists():
            content = path.read_bytes()
            path.write_bytes(alter(content))
            assert path.read_bytes() != content

    relay = restart(region, upstream, folder)

    assert version_of(relay) == -1
    assert ask(relay, "GET", "/api/v1/snapshot", BEARER).status_code == 503


def test_a_bundle_that_the_control_plane_did_not_sign_is_refused(
    region: Relays, upstream: FakeUpstream, folder: Path
) -> None:
    """A file that is signed with the relay's own key, but holds an altered bundle, is refused."""
    document = SignedDocument(b"switchgear-bundle", lambda content: content, orjson.dumps)
    for name in ("bundle", "bundle-previous"):
        if (path := folder / name).exists():
            content = orjson.loads(path.read_bytes().partition(b"\n")[2])
            tokens = content["bundle"]["parts"]["tokens"]["set"]
            tokens["reader0001"] = tokens["reader0001"].replace("switches:read", "relay")
            text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
            path.write_bytes(document.sign_bytes(text, b"own"))

    assert version_of(restart(region, upstream, folder)) == -1


def test_with_another_public_key_the_file_is_refused(
    region: Relays, upstream: FakeUpstream, folder: Path
) -> None:
    other = {OTHER_KEY.public.id: OTHER_KEY.public}

    assert version_of(restart(region, upstream, folder, public_keys=other)) == -1


def test_a_killed_relay_has_saved_what_it_served(
    region: Relays, upstream: FakeUpstream, tmp_path: Path
) -> None:
    folder = tmp_path / "snapshot"
    relay = region.start(upstream.url, folder=folder)
    upstream.state.install_copy(copy(18), upstream.state.now())
    upstream.state.install_tokens(2, {b"other00001": credential("sg_other00001_x", "relay")})
    upstream.publish()
    wait_until(lambda: version_of(relay) == 18, 5)

    saved = BundleDisk(folder, b"own", lambda: KEYS).load()

    assert saved is not None
    assert saved.received.head.publication.version == 18
    assert list(saved.received.contents.tokens) == [b"other00001"]


def test_of_two_processes_the_newer_bundle_stays(
    region: Relays, upstream: FakeUpstream, tmp_path: Path
) -> None:
    folder = tmp_path / "snapshot"
    first = region.start(upstream.url, folder=folder)
    line = region.line(upstream)
    second = region.start(f"http://127.0.0.1:{line.port}", folder=folder)
    line.cut()
    upstream.state.install_copy(copy(18), upstream.state.now())
    upstream.publish()
    wait_until(lambda: version_of(first) == 18, 5)
    assert version_of(second) == 17
    disk = BundleDisk(folder, b"own", lambda: KEYS)

    def saved_version() -> int:
        saved = disk.load()
        return 0 if saved is None else saved.received.head.publication.version

    wait_until(lambda: saved_version() == 18, 5)  # A slow disk doesn't delay serving.
    second.state.changed.set()
    time.sleep(0.2)

    assert saved_version() == 18


def test_a_full_disk_does_not_stop_a_change(
    region: Relays, upstream: FakeUpstream, tmp_path: Path
) -> None:
    folder = tmp_path / "file"
    folder.write_text("not a folder")

    relay = region.start(upstream.url, folder=folder)

    assert version_of(relay) == 17
    wait_until(lambda: relay.state.save_errno is not None, 5)


def test_what_no_confirmation_has_followed_is_not_saved_again() -> None:
    config = RelayConfig(upstreams=("http://127.0.0.1:1",), public_keys=KEYS)

    assert BundleKeeper(config, State(), lambda: KEYS)._collect() is None
