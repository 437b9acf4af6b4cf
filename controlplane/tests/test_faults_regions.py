"""Three distant regions of two relays each: changes everywhere, and one region cut off and healed.

Each region is behind a TCP proxy that delays both directions by 80 ms and can be cut.
"""

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from controlplane.dataplane.tests.lines import Background, background
from controlplane.dataplane.tests.processes import Server
from controlplane.tests.installation import Installation, free_port, running, wait_until
from controlplane.tests.plane_pollers import PlanePollers, Service, service
from demo.distance import Distance

pytestmark = [pytest.mark.faults, pytest.mark.smoke, pytest.mark.timeout(300)]
REGIONS = ("seoul", "frankfurt", "virginia")
RELAYS = tuple(f"{region}-{number}" for region in REGIONS for number in (1, 2))
ONE_WAY_SECONDS = 0.08
EFFECT_SECONDS = 0.25
"""Time from an engagement until it is applied, besides the way."""
CHANGES = 10
SWITCHES = tuple(f"feature:f{number}" for number in range(CHANGES))
CUT_SECONDS = 15.0
"""Length of the partition: what changes with its length is the age alone."""
RESTART_SECONDS = 8.0
"""Until a restarted relay answers: most of it is the start of its process on a busy machine."""
AGE_SECONDS = 4.0
"""Highest age of a relay's snapshot while nothing is wrong."""
RECOVERY_SECONDS = 60.0
REASON = "Wrong figures in answers since 14:02"


@dataclass
class Regions:
    """The relays by name, the ways to their regions, and a service behind each relay."""

    ways: dict[str, Distance]
    relays: dict[str, Server]
    services: dict[str, Service]
    pollers: PlanePollers
    token: str
    loop: Background

    def cut(self, region: str) -> None:
        self.loop.run(self.ways[region].cut())

    def heal(self, region: str) -> None:
        self.loop.run(self.ways[region].open())

    def in_region(self, region: str) -> list[str]:
        return [name for name in RELAYS if name.startswith(region)]

    def request(self, method: str, relay: str, path: str, **more: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.relays[relay].url}{path}"
        return httpx.request(method, url, headers=headers, timeout=10, **more)

    def age(self, relay: str) -> float:
        """Return the age of the relay's snapshot in seconds, as it says."""
        return float(self.request("GET", relay, "/api/v1/snapshot").headers["switchgear-age"])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("house")
    with running(folder / "var", PLANE_NAME="console", DATA_PLANES="") as one:
        yield one


@pytest.fixture(scope="module")
def regions(house: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    folder = tmp_path_factory.mktemp("regions")
    scopes = ("switches:read", "switches:write", "switches:emergency", "report:write")
    token, relay_token = house.token(*scopes), house.token("relay")
    console = int(house.url.rpartition(":")[2])
    with background() as loop, ExitStack() as stack:
        ways = {region: Distance(free_port(), console, ONE_WAY_SECONDS) for region in REGIONS}
        for way in ways.values():
            loop.run(way.open())
            stack.callback(lambda way=way: loop.run(way.cut()))
        relays = {
            name: _relay(name, ways[name.rpartition("-")[0]].port, relay_token, folder)
            for name in RELAYS
        }
        for relay in relays.values():
            stack.callback(relay.kill)
            relay.start()
        services = {
            name: stack.enter_context(
                service(relay.url, token, SWITCHES, name=name, stream=True, output=folder / name)
            )
            for name, relay in relays.items()
        }
        urls = {name: relay.url for name, relay in relays.items()}
        pollers = stack.enter_context(PlanePollers(urls, token))
        wait_until(lambda: all(each.read_log() for each in services.values()), 30)
        yield Regions(ways, relays, services, pollers, token, loop)


def _relay(name: str, upstream: int, token: str, folder: Path) -> Server:
    """Return a relay, not started, that gets nothing of the installation but a token."""
    data, port = folder / f"{name}-data", free_port()
    data.mkdir()
    environment = {
        **{key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ},
        "PLANE_NAME": name,
        "SWITCHGEAR_DATA_DIR": str(data),
        "SWITCHGEAR_TOKEN": token,
    }
    upstream_url = f"http://127.0.0.1:{upstream}"
    arguments = ["manage.py", "dataplane", "--upstream", upstream_url, "--port", str(port)]
    return Server(arguments, environment, folder / f"{name}-said.txt", port)


def test_an_engagement_is_applied_everywhere_soon(house: Installation, regions: Regions) -> None:
    engaged_at = {}
    with house.client(regions.token) as api:
        for switch in SWITCHES[: CHANGES - 2]:
            began = time.time()
            _engage(api, switch)
            engaged_at[switch] = began, time.time()
            for one in regions.services.values():
                wait_until(lambda one=one, switch=switch: one.refuses(switch), 10, one.read_log)

        effect = wait_until_applied(api, SWITCHES[0], len(RELAYS))

    delays = [
        one.refused_at(switch) - committed_at
        for switch, (_, committed_at) in engaged_at.items()
        for one in regions.services.values()
    ]
    assert statistics.median(delays) < EFFECT_SECONDS + ONE_WAY_SECONDS, sorted(delays)
    assert max(delays) < 2, sorted(delays)
    assert effect["applied"] == len(RELAYS)
    assert max(regions.age(name) for name in RELAYS) < AGE_SECONDS


def test_a_region_that_is_cut_off_can_be_stopped_from_inside(
    house: Installation, regions: Regions
) -> None:
    first, second = regions.in_region("seoul")
    others = [name for name in RELAYS if name not in (first, second)]
    inside, outside = SWITCHES[-1], SWITCHES[-2]
    regions.cut("seoul")
    cut_at = time.time()
    body = {"action": "engage", "switch": inside, "reason": REASON, "expires_in": "24h"}

    answer = regions.request("POST", first, "/api/v1/emergency/orders", json=body)

    assert answer.status_code == 201, answer.text
    ordered_at = time.time()
    wait_until(lambda: regions.services[first].refuses(inside), 5)
    with house.client(regions.token) as api:
        _engage(api, outside)
    for name in others:
        wait_until(lambda name=name: regions.services[name].refuses(outside), 5)
    regions.relays[second].kill()
    restarted_at = time.time()
    regions.relays[second].start()
    assert time.time() - restarted_at < RESTART_SECONDS
    time.sleep(max(0.0, cut_at + CUT_SECONDS - time.time()))
    for name in (first, second):
        elapsed = time.time() - cut_at
        assert elapsed - 1 < regions.age(name) < elapsed + AGE_SECONDS
        assert not regions.services[name].refuses(outside)
    assert not any(regions.services[name].refuses(inside) for name in others)

    regions.heal("seoul")

    for name, one in regions.services.items():
        wait_until(
            lambda one=one: one.refuses(inside) and one.refuses(outside),
            RECOVERY_SECONDS,
            lambda name=name, one=one: (name, one.read_log(), regions.relays[name].read_output()),
        )
    wait_until(lambda: max(map(regions.age, RELAYS)) < AGE_SECONDS, 30)
    wait_until(lambda: _count_reconciled(house) == {inside: 1}, RECOVERY_SECONDS)
    assert house.manage("audit", "verify").startswith("intact: ")
    assert regions.pollers.find_released(first, inside, ordered_at) == []


def _engage(api: httpx.Client, switch: str) -> None:
    scope, key = switch.split(":")
    path = f"/api/v1/switches/{scope}/{key}/engage"
    answer = api.post(path, json={"reason": REASON, "expires_in": "4h"})
    assert answer.status_code == 200, answer.text


def wait_until_applied(api: httpx.Client, switch: str, instances: int) -> dict[str, int]:
    """Return the effect of the switch's engagement once this number of instances applies it."""
    scope, key = switch.split(":")

    def effect() -> dict[str, int]:
        found: dict[str, int] = api.get(f"/api/v1/switches/{scope}/{key}/").json()["effect"]
        return found

    wait_until(lambda: effect()["applied"] >= instances, 30, effect)
    return effect()


def _count_reconciled(house: Installation) -> dict[str, int]:
    """Return the number of open episodes that came from emergency orders, by switch."""
    query = """
        SELECT e.switch_id, count(*) FROM switches_episode e
        JOIN switches_emergencyorder o ON o.switch = e.switch_id AND o.state = 'reconciled'
        WHERE e.ended_at IS NULL GROUP BY 1
    """
    with psycopg.connect(house.services()["database_owner_url"]) as database:
        return dict(database.execute(query).fetchall())
