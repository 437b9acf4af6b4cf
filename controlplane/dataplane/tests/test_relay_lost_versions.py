"""A relay leaves an epoch only if the database has the version that the relay serves."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from django.utils import timezone

from controlplane.core.errors import InvalidInput
from controlplane.core.signatures import sign
from controlplane.dataplane.config import Config
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.postgres import lost_versions_sql
from controlplane.dataplane.relay.lost_versions import (
    MAX_QUESTIONS,
    DatabaseVersionCheck,
    SignedSnapshot,
    VersionFate,
)
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.copies import OTHER_EPOCH
from controlplane.dataplane.tests.lines import background, wait_until
from controlplane.dataplane.tests.lossy_failover import lose_versions_after
from controlplane.dataplane.tests.served import READER, copy, credential, plane
from controlplane.dataplane.tests.test_following import engage, has, make_token
from controlplane.dataplane.tests.upstreams import (
    KEY,
    OTHER_KEY,
    FakeUpstream,
    Relays,
    relays,
    version_of,
    wait_for_version,
)
from switches.lost_versions.reconciliation import reconcile_lost_versions
from switches.models import LostVersion

CHAT = "feature:chat"


@pytest.fixture
def region() -> Iterator[Relays]:
    with background() as loop, relays(loop) as made:
        yield made


def begin_epoch(upstream: FakeUpstream, version: int, *switches: str) -> None:
    """Let the upstream serve another epoch, with these switches engaged."""
    state = upstream.state
    state.install_copy(copy(version, *switches, epoch=OTHER_EPOCH), state.now())
    state.install_tokens(1, {b"reader0001": credential(READER, "switches:read")})
    upstream.publish()


def engaged(relay: Plane) -> set[str]:
    assert relay.state.copy is not None
    return set(relay.state.copy.entries)


def test_a_lost_version_stays_until_it_is_restored(region: Relays) -> None:
    upstream = region.upstream(CHAT)
    upstream.fate = {"is_lost": True, "restored_in": None}
    relay = region.start(upstream.url)
    before = version_of(relay)

    begin_epoch(upstream, before + 1)
    upstream.confirm()
    wait_until(lambda: relay.state.upstream is not None, 5)
    assert (version_of(relay), engaged(relay)) == (before, {CHAT})
    assert upstream.asked["plane"] == "relay-1"

    upstream.fate = {"is_lost": False, "restored_in": before + 2}
    upstream.confirm()
    time.sleep(0.3)
    assert (version_of(relay), engaged(relay)) == (before, {CHAT})

    begin_epoch(upstream, before + 2, CHAT)
    wait_for_version(relay, before + 2)
    upstream.confirm()
    wait_until(lambda: relay.state.upstream is None, 5)
    assert engaged(relay) == {CHAT}


def test_a_known_version_is_left_at_once(region: Relays) -> None:
    upstream = region.upstream(CHAT)
    upstream.fate = {"is_lost": False, "restored_in": None}
    relay = region.start(upstream.url)

    begin_epoch(upstream, 3)

    wait_for_version(relay, 3)
    assert engaged(relay) == set()


def test_an_older_bundle_makes_the_relay_report_its_version(region: Relays) -> None:
    upstream = region.upstream(CHAT)
    upstream.fate = {"is_lost": True, "restored_in": None}
    relay = region.start(upstream.url)
    state = upstream.state
    state.install_copy(copy(1), state.now())
    upstream.publish()
    wait_until(lambda: relay.state.bundles["older"] == 1, 5)

    upstream.confirm()

    wait_until(lambda: bool(upstream.asked), 5)
    assert engaged(relay) == {CHAT}


def test_a_data_plane_reports_the_version_of_a_relay_to_its_database(
    following: Following,
) -> None:
    make_token()
    kept = engage("kept")
    lost = engage("lost")
    wait_until(has(following, lost), 3)
    state = following.state
    assert state.published is not None
    body = state.published.body
    served = SignedSnapshot(body, sign(body, [KEY]), "relay-1")
    following.database.cut()
    lose_versions_after(kept)
    following.database.mend()
    following.stop()
    state.signing_keys = [KEY]
    ask = DatabaseVersionCheck(following.config, state)

    def answer() -> VersionFate:
        return following.loop.run(ask(served))

    LostVersion.objects.all().delete()
    assert answer() == VersionFate(is_lost=True)
    assert LostVersion.objects.get().plane == "relay-1"
    reconcile_lost_versions(timezone.now())
    closed = LostVersion.objects.get().closed_version
    assert answer() == VersionFate(is_lost=False, restored_in=closed)

    state.signing_keys = [OTHER_KEY]
    with pytest.raises(InvalidInput):
        following.loop.run(ask(replace_body(served)))


def test_relays_that_ask_at_once_share_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    state = plane().state
    state.signing_keys = [KEY]
    assert state.published is not None
    body = state.published.body
    served = SignedSnapshot(body, sign(body, [KEY]), "relay-1")
    present: list[object] = []
    numbers: list[int] = []

    async def ask_version(*asked: object) -> tuple[bool, int | None]:
        present.append(asked)
        numbers.append(len(present))
        await asyncio.sleep(0.001)
        present.remove(asked)
        return False, None

    async def ask_all() -> None:
        ask = DatabaseVersionCheck(Config("postgresql://", None, "redis://"), state)
        await asyncio.gather(*(ask(served) for _ in range(50)))

    monkeypatch.setattr(lost_versions_sql, "ask_version", ask_version)
    asyncio.run(ask_all())

    assert (len(numbers), max(numbers)) == (50, MAX_QUESTIONS)


def replace_body(served: SignedSnapshot) -> SignedSnapshot:
    return served._replace(body=served.body.replace(b"segment:lost", b"segment:none"))
