"""A relay serves what its upstream has, with the age that it really has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.dataplane.memory.credentials import CodeHash
from controlplane.dataplane.memory.policies import Policies
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay import follower
from controlplane.dataplane.tests.copies import CAUSE, OTHER_EPOCH, POLICY
from controlplane.dataplane.tests.lines import background, wait_until
from controlplane.dataplane.tests.served import BEARER, EPOCH, ask, copy, credential
from controlplane.dataplane.tests.upstreams import (
    KEY,
    OTHER_KEY,
    TOKEN,
    Relays,
    relays,
    version_of,
    wait_for_version,
)


@pytest.fixture
def region() -> Iterator[Relays]:
    with background() as loop, relays(loop) as made:
        yield made


def causes_of(relay: Plane) -> list[str]:
    return [cause.what for cause in relay.state.own_causes()]


def test_it_serves_the_snapshot_of_its_upstream_byte_by_byte(region: Relays) -> None:
    upstream = region.upstream("segment:finance")
    state = upstream.state
    assert state.published is not None
    state.install_copy(state.published.with_signature("keyid=0;sig=1"), state.now(), {})

    relay = region.start(upstream.url)

    answer = ask(relay, "GET", "/api/v1/snapshot", BEARER)
    assert (answer.status_code, answer.content) == (200, state.published.body)
    assert answer.headers["Switchgear-Signature"] == "keyid=0;sig=1"
    assert float(answer.headers["Switchgear-Age"]) < 1
    ((path, headers),) = upstream.requests
    assert path == "/api/v1/relay/stream"
    assert headers["authorization"].lower() == f"bearer {TOKEN}"
    assert headers["switchgear-relay"] == "relay-1"


def test_it_has_tokens_codes_policies_causes_and_known_switches(region: Relays) -> None:
    upstream = region.upstream()
    state = upstream.state
    codes = {"kim": CodeHash(1, b"salt", b"digest")}
    state.install_tokens(2, state.tokens or {}, codes)
    state.install_policies(Policies.build(EPOCH, 9, [POLICY]))
    state.install_causes(3, (CAUSE,))
    state.install_known(4, frozenset({"segment:finance"}))
    state.left_epochs = frozenset({OTHER_EPOCH})

    found = region.start(upstream.url).state

    assert (found.tokens, found.codes) == (state.tokens, codes)
    assert found.policies is not None
    assert found.policies.list_all() == [POLICY]
    assert found.causes == (CAUSE,)
    assert found.known == {"segment:finance"}
    assert found.left_epochs == {OTHER_EPOCH}


def test_a_change_and_a_revoked_token_arrive_as_a_difference(region: Relays) -> None:
    upstream = region.upstream()
    relay = region.start(upstream.url)
    assert ask(relay, "GET", "/api/v1/snapshot", BEARER).status_code == 200

    upstream.state.install_copy(copy(18, "segment:finance"), upstream.state.now())
    upstream.state.install_tokens(2, {b"other00001": credential("sg_other00001_x", "metrics:read")})
    upstream.publish()

    wait_for_version(relay, 18)
    assert ask(relay, "GET", "/api/v1/snapshot", BEARER).status_code == 401


def test_the_age_of_the_upstream_is_added(region: Relays) -> None:
    upstream = region.upstream()
    upstream.age = 42.0

    relay = region.start(upstream.url)

    assert 42 <= relay.state.age_seconds() < 44
    assert relay.state.database_reachable

    upstream.confirm(age=1.0, database=False, redis=False)
    wait_until(lambda: relay.state.age_seconds() < 3, 5)
    assert not relay.state.database_reachable
    assert not relay.state.redis_reachable
    assert relay.state.upstream is None


def test_data_held_back_on_the_way_does_not_look_fresh(region: Relays) -> None:
    upstream = region.upstream()
    line = region.line(upstream)
    relay = region.start(f"http://127.0.0.1:{line.port}")
    wait_until(lambda: relay.state.age_seconds() > 0.6, 5)
    line.freeze()
    held_at = relay.state.now()
    upstream.confirm()
    wait_until(lambda: relay.state.now() - held_at > 2, 5)

    age_before = relay.state.age_seconds()
    line.thaw()
    wait_until(lambda: relay.state.age_seconds() < age_before - 0.3, 3)

    assert relay.state.age_seconds() >= 2


def test_cut_off_it_answers_ages_and_tells_it_and_catches_up(region: Relays) -> None:
    upstream = region.upstream()
    relay = region.start(upstream.url)
    upstream.stop()
    wait_until(lambda: relay.state.upstream is not None, 5)

    answer = ask(relay, "GET", "/api/v1/snapshot", BEARER)
    assert answer.status_code == 200
    assert not relay.state.database_reachable
    found = ask(relay, "GET", "/api/v1/degradation", BEARER).json()
    assert [effect["what"] for effect in found["effects"]] == ["upstream"]
    assert f"127.0.0.1:{upstream.port}" in found["causes"][0]
    assert "PostgreSQL" not in found["causes"][0]

    upstream.state.install_copy(copy(18), upstream.state.now())
    upstream.start()
    wait_for_version(relay, 18, 8)
    wait_until(lambda: relay.state.database_reachable, 5)
    assert causes_of(relay) == []
    assert "switchgear-bundle" in upstream.requests[-1][1]


def test_it_goes_on_to_the_next_upstream_and_stays_there(region: Relays) -> None:
    first, second = region.upstream(), region.upstream()
    second.state.install_copy(copy(18), second.state.now())
    relay = region.start(first.url, second.url)
    assert version_of(relay) == 17

    first.stop()

    wait_for_version(relay, 18)
    assert relay.state.upstream is None
    first.start()
    second.stop()
    second.start()
    wait_until(lambda: second.count_streams() == 1, 5)
    assert first.count_streams() == 0


def test_a_name_may_have_any_letters(region: Relays) -> None:
    upstream = region.upstream()

    region.start(upstream.url, plane="zürich-서울")

    name = upstream.requests[0][1]["switchgear-relay"]
    assert name == "zürich-서울"


def test_a_refused_token_is_a_cause_of_degradation(region: Relays) -> None:
    upstream = region.upstream()
    upstream.status = 401

    relay = region.start(upstream.url)

    cause = relay.state.upstream
    assert cause is not None
    assert "refuses this relay's token" in cause.text
    assert ask(relay, "GET", "/health/ready/data").status_code == 503


def test_a_silent_upstream_is_lost(region: Relays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.dataplane.relay.upstream.SILENCE_SECONDS", 0.5)
    upstream = region.upstream()
    relay = region.start(upstream.url)

    wait_until(lambda: relay.state.upstream is not None, 5)
    assert relay.state.upstream is not None
    assert "does not respond" in relay.state.upstream.text


def test_a_stream_is_renewed_after_a_while(region: Relays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "STREAM_SECONDS", 0.2)
    upstream = region.upstream()
    relay = region.start(upstream.url)

    def confirmed_again() -> bool:
        upstream.confirm()
        return len(upstream.requests) > 2

    wait_until(confirmed_again, 5)
    assert relay.state.upstream is None
    assert relay.state.database_reachable


def test_without_a_public_key_those_of_the_upstream_are_pinned(
    region: Relays, tmp_path: Path
) -> None:
    upstream = region.upstream()
    relay = region.start(upstream.url, public_keys={}, folder=tmp_path / "snapshot")
    wait_for_version(relay, 17)
    assert [path for path, _ in upstream.requests] == ["/api/v1/keys", "/api/v1/relay/stream"]
    region.stop(relay)

    upstream.keys, upstream.listed = [OTHER_KEY], [OTHER_KEY]
    again = region.start(upstream.url, public_keys={}, folder=tmp_path / "snapshot")

    wait_until(lambda: again.state.bundles["invalid"] > 0, 5)
    cause = again.state.upstream
    assert cause is not None
    assert "unknown key" in cause.text


def test_a_rotated_key_is_trusted_once_the_old_one_has_signed_it(
    region: Relays, tmp_path: Path
) -> None:
    upstream = region.upstream()
    folder = tmp_path / "snapshot"
    relay = region.start(upstream.url, folder=folder, public_keys={})
    upstream.keys, upstream.listed = [OTHER_KEY, KEY], [OTHER_KEY, KEY]
    upstream.publish()
    wait_until(lambda: relay.state.bundles["applied"] == 2, 5)

    upstream.keys, upstream.listed = [OTHER_KEY], [OTHER_KEY]
    upstream.publish()
    wait_until(lambda: relay.state.bundles["applied"] == 3, 5)
    region.stop(relay)

    again = region.start(upstream.url, folder=folder, public_keys={})
    assert again.state.bundles["invalid"] == 0
    assert again.state.database_reachable

    upstream.keys = [KEY]
    upstream.publish()
    wait_until(lambda: again.state.bundles["invalid"] == 1, 5)


def test_configured_keys_stay_trusted_whatever_bundles_list(region: Relays) -> None:
    first, second = region.upstream(), region.upstream()
    second.keys, second.listed = [OTHER_KEY], [OTHER_KEY]
    second.state.install_copy(copy(18), second.state.now())
    keys = {key.public.id: key.public for key in (KEY, OTHER_KEY)}
    relay = region.start(first.url, second.url, public_keys=keys)

    first.stop()

    wait_for_version(relay, 18)


def test_another_upstream_with_older_policies_changes_none(region: Relays) -> None:
    first, second = region.upstream(), region.upstream()
    for upstream, version in ((first, 9), (second, 8)):
        policy = POLICY._replace(version=version)
        upstream.state.install_policies(Policies.build(EPOCH, version, [policy]))
    second.state.install_copy(copy(18), second.state.now())
    relay = region.start(first.url, second.url)

    first.stop()
    wait_for_version(relay, 18)

    assert relay.state.policies is not None
    assert relay.state.policies.version == 9
