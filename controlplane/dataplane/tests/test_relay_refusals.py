"""A relay refuses what is altered, incomplete, wrongly signed or old, and keeps what it has."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from controlplane.core.signatures import sign
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay.bundle import SIGNED_PREFIX
from controlplane.dataplane.relay.difference import serialize_full
from controlplane.dataplane.tests.copies import OTHER_EPOCH
from controlplane.dataplane.tests.lines import background, wait_until
from controlplane.dataplane.tests.served import BEARER, READER, ask, copy, credential
from controlplane.dataplane.tests.upstreams import (
    OTHER_KEY,
    FakeUpstream,
    Relays,
    relays,
    version_of,
    wait_for_version,
)


@pytest.fixture
def region() -> Iterator[Relays]:
    with background() as loop, relays(loop) as made:
        yield made


def next_version(upstream: FakeUpstream) -> bytes:
    """Return the data of a bundle that releases the only switch."""
    upstream.state.install_copy(copy(18), upstream.state.now())
    return serialize_full(upstream.make_bundle())


def changed(data: bytes, change: Callable[[Any], None]) -> bytes:
    document = orjson.loads(data)
    change(document)
    return orjson.dumps(document)


def add_a_token(document: Any) -> None:
    token = orjson.loads(document["parts"]["tokens"]["set"]["reader0001"])
    token["prefix"] = "intruder01"
    document["parts"]["tokens"]["set"]["intruder01"] = orjson.dumps(token).decode()


def set_the_version(document: Any) -> None:
    document["manifest"] = document["manifest"].replace('"version":18', '"version":19')


def leave_out_a_part(document: Any) -> None:
    del document["parts"]["snapshot"]


def name_an_unknown_base(document: Any) -> None:
    document["parts"]["tokens"]["base"] = "0" * 64


def signed_by_another_key(upstream: FakeUpstream) -> bytes:
    next_version(upstream)
    upstream.keys = [OTHER_KEY]
    return serialize_full(upstream.make_bundle())


ALTERED: dict[str, Callable[[FakeUpstream], bytes]] = {
    "a token was added": lambda it: changed(next_version(it), add_a_token),
    "the manifest was altered": lambda it: changed(next_version(it), set_the_version),
    "a part is missing": lambda it: changed(next_version(it), leave_out_a_part),
    "relative to an unknown part": lambda it: changed(next_version(it), name_an_unknown_base),
    "truncated": lambda it: next_version(it)[:-100],
    "signed by another key": signed_by_another_key,
    "not signed": lambda it: changed(next_version(it), lambda each: each.update(signature="")),
    "not JSON": lambda _it: b"bundle",
}


@pytest.mark.parametrize("make", ALTERED.values(), ids=ALTERED.keys())
def test_an_invalid_bundle_is_refused_and_asked_for_again(
    make: Callable[[FakeUpstream], bytes], region: Relays
) -> None:
    upstream = region.upstream("segment:finance")
    relay = region.start(upstream.url)
    data = make(upstream)
    upstream.greets = False

    upstream.send("bundle", data)
    wait_until(lambda: relay.state.bundles["invalid"] == 1, 5)

    assert version_of(relay) == 17
    assert relay.state.tokens is not None
    assert b"intruder01" not in relay.state.tokens
    assert relay.state.bundles["applied"] == 1
    wait_until(lambda: len(upstream.requests) > 1, 5)
    assert "switchgear-bundle" not in upstream.requests[-1][1]
    cause = relay.state.upstream
    assert cause is not None
    assert "refuses what the upstream" in cause.text


def test_a_replayed_bundle_is_ignored_and_not_confirmed(region: Relays) -> None:
    upstream = region.upstream("segment:finance")
    old = serialize_full(upstream.make_bundle())
    upstream.state.install_copy(copy(18), upstream.state.now())
    relay = region.start(upstream.url)
    wait_for_version(relay, 18)

    upstream.send("bundle", old)
    wait_until(lambda: relay.state.bundles["older"] == 1, 5)
    before = relay.state.age_seconds()
    upstream.confirm()

    assert not is_confirmed_soon(relay, before)
    assert version_of(relay) == 18
    cause = relay.state.upstream
    assert cause is not None
    assert "version 17 is older than 18" in cause.text

    upstream.send("bundle", serialize_full(upstream.make_bundle()))
    upstream.confirm()
    wait_until(lambda: relay.state.upstream is None, 5)


def test_a_replayed_bundle_brings_no_revoked_token_back(region: Relays) -> None:
    upstream = region.upstream()
    relay = region.start(upstream.url)
    old = serialize_full(upstream.make_bundle())
    upstream.state.install_tokens(2, {b"other00001": credential("sg_other00001_x", "metrics:read")})
    upstream.publish()
    wait_until(lambda: relay.state.revision == 2, 5)

    upstream.send("bundle", old)
    wait_until(lambda: relay.state.bundles["older"] == 1, 5)

    assert ask(relay, "GET", "/api/v1/snapshot", BEARER).status_code == 401


def test_a_bundle_of_an_epoch_that_was_left_is_ignored(region: Relays) -> None:
    upstream = region.upstream("segment:finance")
    relay = region.start(upstream.url)
    old = serialize_full(upstream.make_bundle())
    upstream.state.install_copy(copy(3, epoch=OTHER_EPOCH), upstream.state.now())
    upstream.state.install_tokens(1, {b"reader0001": credential(READER, "switches:read")})
    upstream.publish()
    wait_for_version(relay, 3)

    upstream.send("bundle", old)
    wait_until(lambda: relay.state.bundles["older"] == 1, 5)

    assert version_of(relay) == 3


def test_a_version_with_another_time_of_publication_is_ignored(region: Relays) -> None:
    upstream = region.upstream("segment:finance")
    relay = region.start(upstream.url)
    before = upstream.make_bundle()
    document = before.manifest.replace(b"2026-11-21T03:00:00", b"2026-11-21T04:00:00")
    other = changed(
        serialize_full(before), lambda each: each.update(resigned(upstream, document.decode()))
    )

    upstream.send("bundle", other)

    wait_until(lambda: relay.state.bundles["older"] == 1, 5)
    assert relay.state.bundles["applied"] == 1


def resigned(upstream: FakeUpstream, manifest: str) -> dict[str, str]:
    return {
        "manifest": manifest,
        "signature": sign(SIGNED_PREFIX + manifest.encode(), upstream.keys),
    }


def test_with_another_upstream_it_leaves_one_that_is_older(
    region: Relays, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.dataplane.relay.follower.LAG_SECONDS", 0.2)
    first, second = region.upstream(), region.upstream()
    second.state.install_copy(copy(18), second.state.now())
    relay = region.start(second.url, first.url)
    wait_for_version(relay, 18)
    second.stop()
    wait_until(lambda: relay.state.bundles["older"] > 0, 5)

    second.start()

    def is_back() -> bool:
        first.confirm()
        return second.count_streams() == 1 and relay.state.upstream is None

    wait_until(is_back, 10)
    assert version_of(relay) == 18


@pytest.mark.parametrize("fields", [{"at": None}, {"age": -1}, {"age": "0"}, {"time": "now"}])
def test_an_invalid_confirmation_confirms_nothing(fields: dict[str, Any], region: Relays) -> None:
    upstream = region.upstream()
    relay = region.start(upstream.url)
    before = relay.state.age_seconds()
    upstream.greets = False

    upstream.confirm(**fields)

    assert not is_confirmed_soon(relay, before)
    wait_until(lambda: len(upstream.requests) > 1, 5)


def is_confirmed_soon(relay: Plane, before: float) -> bool:
    """Return True if the relay's data is confirmed within half a second."""
    ends = time.monotonic() + 0.5
    while time.monotonic() < ends:
        if relay.state.age_seconds() < before:
            return True
        time.sleep(0.01)
    return False
