"""A failover to a PostgreSQL replica that was behind: nothing that was engaged is released.

The pollers and the service read data planes, a relay, and the console.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from controlplane.dataplane.tests.lines import Background, Line, background
from controlplane.dataplane.tests.processes import Server, addresses, data_plane, relay
from controlplane.dataplane.tests.watch import Watch, watching
from controlplane.supervisor import cluster
from controlplane.tests.installation import Installation, running, wait_until
from controlplane.tests.plane_pollers import PlanePollers, Service, service
from controlplane.tests.postgres_pair import HOST, PostgresServer, postgres_pair

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
NAMES = ("dp-1", "dp-2")
KEPT, LOST, RELEASED, LATER = "feature:kept", "feature:lost", "feature:released", "feature:later"
SWITCHES = (KEPT, LOST, RELEASED, LATER)
REASON = "OpenAI 5xx on completions since 02:10"
EPOCH = "SELECT epoch, version FROM switches_publication"


@dataclass
class House:
    """An installation whose PostgreSQL has a replica, with two data planes and a relay."""

    primary: PostgresServer
    replica: PostgresServer
    line: Line
    """The address of PostgreSQL that all processes know."""
    console: Installation
    planes: dict[str, Server]
    client: httpx.Client
    token: str

    @property
    def urls(self) -> dict[str, str]:
        return {"console": self.console.url, **{k: it.url for k, it in self.planes.items()}}

    def engage(self, switch: str) -> int:
        return self._change(switch, "engage", {"reason": REASON, "expires_in": "24h"})

    def release(self, switch: str) -> int:
        body = {"justification": "duplicates refunded", "mode": "immediate"}
        return self._change(switch, "release", body)

    def _change(self, switch: str, verb: str, body: dict[str, str]) -> int:
        path = f"/api/v1/switches/{switch.replace(':', '/')}/{verb}"
        answer = self.client.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
        return int(answer.json()["version"])

    def fail_over(self) -> None:
        """Crash the primary, promote the replica, and let the address lead there."""
        self.primary.kill()
        self.line.cut()
        self.replica.promote()
        self.line.lead_to(self.replica.port)
        self.line.mend()

    def has_replayed(self, version: int) -> bool:
        ((_, found),) = self.replica.query(EPOCH, cluster.DATABASE)
        return bool(found >= version)

    def read_epoch(self) -> object:
        return self.replica.query(EPOCH, cluster.DATABASE)[0][0]

    def attention(self) -> set[str]:
        answer = self.client.get("/api/v1/attention/")
        return {item["kind"] for item in answer.json()["results"]}


@pytest.fixture
def loop() -> Iterator[Background]:
    with background() as one:
        yield one


@pytest.fixture
def house(tmp_path: Path, loop: Background) -> Iterator[House]:
    with ExitStack() as stack:
        primary, replica = stack.enter_context(postgres_pair(tmp_path / "postgres"))
        line = Line(loop, HOST, primary.port)
        variables = {
            "SECRET_KEY": uuid4().hex * 2,
            "DATABASE_URL": primary.url(cluster.APPLICATION, port=line.port),
            "DATABASE_OWNER_URL": primary.url(cluster.OWNER, port=line.port),
            "PLANE_NAME": "console",
        }
        console = stack.enter_context(running(tmp_path / "var", **variables))
        environment = {**addresses(console), **variables}
        planes = {
            name: stack.enter_context(
                data_plane({**environment, "PLANE_NAME": name}, tmp_path / name)
            )
            for name in NAMES
        }
        token = console.token("switches:read", "switches:write", "report:write", "reports:read")
        upstream = int(planes["dp-2"].url.rpartition(":")[2])
        planes["relay"] = stack.enter_context(
            relay(tmp_path / "relay", console.token("relay"), upstream)
        )
        client = stack.enter_context(console.client(token))
        yield House(primary, replica, line, console, planes, client, token)


@pytest.fixture
def pollers(house: House) -> Iterator[PlanePollers]:
    with PlanePollers(house.urls, house.token) as one:
        yield one


@pytest.fixture
def watch(house: House, loop: Background) -> Iterator[Watch]:
    headers = {"Authorization": f"Bearer {house.token}"}
    with watching(loop, headers, *([url] for url in house.urls.values())) as one:
        yield one


@pytest.fixture
def follower(house: House, tmp_path: Path) -> Iterator[Service]:
    plane, output = house.planes["relay"], tmp_path / "service"
    details = {"name": "core", "stream": True, "output": output}
    with service(plane.url, house.token, SWITCHES, **details) as one:
        yield one


@pytest.mark.smoke
def test_promoted_replica_that_was_behind_releases_nothing(
    house: House, pollers: PlanePollers, watch: Watch, follower: Service
) -> None:
    house.engage(KEPT)
    replicated = house.engage(RELEASED)
    wait_until(lambda: house.has_replayed(replicated), 10)
    house.replica.cut_replication()
    house.engage(LOST)
    newest = house.release(RELEASED)
    watch.until_all_have(newest, 10)
    wait_until(lambda: follower.refuses(LOST), 10)
    assert not house.has_replayed(replicated + 1)
    since, ((left, _),) = time.time(), house.primary.query(EPOCH, cluster.DATABASE)

    restarted = house.planes["dp-1"]
    restarted.kill()
    house.fail_over()
    took = wait_until(
        lambda: house.replica.query(EPOCH, cluster.DATABASE)[0][0] != left,
        60,
        restarted.read_output,
    )
    print(f"the new epoch began {took:.2f} s after the promotion")
    restarted.start()
    ((began, version),) = house.replica.query(EPOCH, cluster.DATABASE)
    marks = {(str(began), version)}
    took = wait_until(lambda: {*watch.has.values()} == marks, 20, lambda: watch.has)
    print(f"all pollers have it {took:.2f} s later")

    later = house.engage(LATER)
    watch.until_all_have(later, 10)
    wait_until(lambda: follower.refuses(LATER), 10)
    wait_until(lambda: all(pollers.has(name, (KEPT, LOST, LATER)) for name in house.urls), 10)
    for switch in (KEPT, LOST):
        for name in house.urls:
            assert pollers.find_released(name, switch, since) == []
    assert all({KEPT, LOST} <= keys for at, keys in follower.read_log() if at > since)
    wait_until(lambda: "changes_lost" in house.attention(), 10, house.attention)
    rows = house.replica.query(
        "SELECT e.switch_id, c.was_engaged FROM switches_lostchange c"
        " JOIN switches_episode e ON e.id = c.episode_id ORDER BY 1",
        cluster.DATABASE,
    )
    assert rows == [(LOST, True), (RELEASED, False)]
    assert house.replica.query(
        "SELECT count(*) FROM core_auditentry WHERE action = 'epoch.began'", cluster.DATABASE
    ) == [(1,)]
    watch.judge_versions()


def test_replica_that_lags_is_refused_and_begins_no_epoch(house: House, watch: Watch) -> None:
    replicated = house.engage(KEPT)
    wait_until(lambda: house.has_replayed(replicated), 10)
    house.replica.cut_replication()
    newest = house.engage(LOST)
    watch.until_all_have(newest, 10)
    before = house.primary.query(EPOCH, cluster.DATABASE)

    house.line.cut()
    house.line.lead_to(house.replica.port)
    house.line.mend()
    wait_until(lambda: house.planes["dp-2"].logged("dataplane.older_version_ignored") != [], 10)
    time.sleep(5)
    assert {mark[1] for mark in watch.has.values()} == {newest}
    house.line.cut()
    house.line.lead_to(house.primary.port)
    house.line.mend()

    watch.until_all_have(house.engage(LATER), 20)
    assert house.primary.query(EPOCH, cluster.DATABASE)[0][0] == before[0][0]
    reports = "SELECT count(*) FROM switches_lostversion"
    assert house.primary.query(reports, cluster.DATABASE) == [(0,)]
    watch.judge_versions()
