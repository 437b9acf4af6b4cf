"""Emergency orders at relays, with real processes: cut off, killed, and back again."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest

from controlplane.dataplane.tests.lines import Line, background
from controlplane.dataplane.tests.processes import Server, killed, relay
from controlplane.tests.installation import Installation, running, wait_until
from controlplane.tests.plane_pollers import PlanePollers, Service, service
from controlplane.tests.test_faults_emergency import CREATE_CODE, REASON

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
SWITCHES = tuple(f"feature:f{number}" for number in range(1, 9))
EFFECT_SECONDS = 1.5
RECOVERY_SECONDS = 60.0
REVOKE_CODE = """
from django.utils import timezone
from controlplane.accounts.emergency_codes import services
from controlplane.accounts.models.people import User
user = User.objects.get(username="admin")
services.revoke_code(user=user, actor=user.as_actor(), now=timezone.now())
"""


@dataclass
class Regions:
    """A console and two relays behind lines, each with a service that follows it alone."""

    house: Installation
    lines: dict[str, Line]
    relays: dict[str, Server]
    services: dict[str, Service]
    pollers: PlanePollers
    token: str

    def order(self, url: str, switch: str, token: str = "", **more: str) -> httpx.Response:
        body = {"action": "engage", "switch": switch, "reason": REASON, **more}
        return self.post(url, body, token)

    def withdraw(self, url: str, order_id: str) -> httpx.Response:
        body = {"action": "withdraw", "order": order_id, "reason": "false alarm, all fine again"}
        return self.post(url, body)

    def order_by_page(self, url: str, switch: str, code: str) -> httpx.Response:
        form = {
            "action": "engage",
            "nonce": str(uuid4()),
            "typed_switch": switch,
            "reason": REASON,
            "name": "admin",
            "code": code,
        }
        return httpx.post(f"{url}/emergency/", data=form, timeout=10)

    def wait_for(self, switch: str, *names: str, refuses: bool = True, seconds: float = 5) -> None:
        for name in names:
            one = self.services[name]
            wait_until(
                lambda one=one: one.refuses(switch) == refuses,
                seconds,
                lambda one=one, name=name: (one.read_log(), self.relays[name].read_output()),
            )

    def query(self, sql: str, *parameters: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.house.services()["database_owner_url"]) as database:
            return database.execute(sql, parameters).fetchall()

    def wait_for_state(self, switch: str, *states: str) -> None:
        sql = "SELECT state FROM switches_emergencyorder WHERE switch = %s ORDER BY action, at"

        def has_states() -> bool:
            return [row[0] for row in self.query(sql, switch)] == [*states]

        wait_until(has_states, RECOVERY_SECONDS, lambda: self.query(sql, switch))

    def count_episodes(self, switch: str) -> int:
        return len(self.query("SELECT id FROM switches_episode WHERE switch_id = %s", switch))

    def check_one_episode(self, switch: str, plane: str) -> None:
        """Check that the order became one episode, with one audit row that names the relay."""
        ((evidence,),) = self.query(
            "SELECT evidence -> 'emergency_order' FROM switches_episode WHERE switch_id = %s",
            switch,
        )
        assert isinstance(evidence, dict)
        assert (evidence["plane"], len(evidence["relay"])) == (plane, 16)
        audited = "SELECT id FROM core_auditentry WHERE target = %s AND action = 'switch.engaged'"
        assert len(self.query(audited, switch)) == 1
        reviews = "SELECT summary FROM core_approval WHERE target = %s"
        ((summary,),) = self.query(reviews, switch)
        assert f"on the relay {plane}" in str(summary)

    def post(self, url: str, body: dict[str, str], token: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        path = f"{url}/api/v1/emergency/orders"
        return httpx.post(path, json=body, headers=headers, timeout=10)


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    base: Path = tmp_path_factory.mktemp("regions")
    with ExitStack() as stack:
        loop = stack.enter_context(background())
        house = stack.enter_context(running(base / "var", PLANE_NAME="console"))
        token = house.token("switches:read", "switches:emergency", "report:write")
        lines, relays, services = {}, {}, {}
        for name in ("eu", "us"):
            lines[name] = Line(loop, "127.0.0.1", house.port)
            relays[name] = stack.enter_context(
                relay(base / name, house.token("relay"), lines[name].port)
            )
            services[name] = stack.enter_context(
                service(
                    *(relays[name].url, token, SWITCHES),
                    name=name,
                    stream=True,
                    output=base / f"{name}.log",
                )
            )
        urls = {name: server.url for name, server in relays.items()}
        pollers = stack.enter_context(PlanePollers(urls, token))
        wait_until(lambda: all(each.read_log() for each in services.values()), 30)
        wait_until(lambda: all(pollers.has(name, ()) for name in urls), 30)
        yield Regions(house, lines, relays, services, pollers, token)


@pytest.fixture
def code(regions: Regions) -> str:
    """The emergency code of the person admin, known to both relays."""
    house = regions.house
    found = re.search(r"^code: (\S+)$", house.manage("shell", "-c", CREATE_CODE), re.MULTILINE)
    assert found is not None
    time.sleep(EFFECT_SECONDS + 1)
    return found[1]


def test_an_order_at_a_relay_reaches_another_region_and_becomes_an_episode(
    regions: Regions,
) -> None:
    switch, url = SWITCHES[0], regions.relays["eu"].url

    answer = regions.order(url, switch)
    at = time.time()

    assert answer.status_code == 201, answer.text
    assert answer.json()["accepted_by"] == ["console", "eu"]
    regions.wait_for(switch, "eu", "us")
    for one in regions.services.values():
        assert one.refused_at(switch) - at < EFFECT_SECONDS
    regions.wait_for_state(switch, "reconciled")
    time.sleep(2)
    regions.check_one_episode(switch, "eu")
    assert regions.pollers.find_released("eu", switch, at) == []
    assert regions.pollers.find_released("us", switch, at + EFFECT_SECONDS) == []


def test_a_region_that_is_cut_off_is_killed_from_inside(regions: Regions, code: str) -> None:
    switch, server, line = SWITCHES[1], regions.relays["eu"], regions.lines["eu"]
    line.cut()
    try:
        page = regions.order_by_page(server.url, switch, code)
        at = time.time()
        assert page.status_code == 200, page.text
        regions.wait_for(switch, "eu")
        assert regions.services["eu"].refused_at(switch) - at < EFFECT_SECONDS
        server.kill()
        server.start()
        time.sleep(2)
        regions.wait_for(switch, "eu")
        assert not regions.services["us"].refuses(switch)
        assert regions.count_episodes(switch) == 0
    finally:
        line.mend()

    regions.wait_for_state(switch, "reconciled")
    regions.wait_for(switch, "us")
    time.sleep(2)
    regions.check_one_episode(switch, "eu")
    assert regions.pollers.find_released("eu", switch, at) == []
    assert all(switch in keys for since, keys in regions.services["eu"].read_log() if since > at)
    assert regions.house.manage("audit", "verify").startswith("intact: ")


def test_an_order_withdrawn_during_a_cut_leaves_rows_and_no_episode(regions: Regions) -> None:
    switch, url, line = SWITCHES[2], regions.relays["eu"].url, regions.lines["eu"]
    line.cut()
    try:
        order_id = regions.order(url, switch).json()["id"]
        regions.wait_for(switch, "eu")
        assert regions.withdraw(url, order_id).status_code == 201
        regions.wait_for(switch, "eu", refuses=False)
    finally:
        line.mend()

    regions.wait_for_state(switch, "withdrawn", "withdrawn")
    assert regions.count_episodes(switch) == 0
    assert not regions.services["us"].refuses(switch)


def test_orders_and_withdrawals_pass_both_ways_while_postgresql_is_down(
    regions: Regions,
) -> None:
    console = regions.house.url
    urls = {name: server.url for name, server in regions.relays.items()}
    at_relay, at_console, by_console = SWITCHES[3:6]
    with killed(regions.house, "postgres"):
        first = regions.order(urls["eu"], at_relay).json()["id"]
        second = regions.order(console, at_console).json()["id"]
        third = regions.order(urls["eu"], by_console).json()["id"]
        for switch in (at_relay, at_console, by_console):
            regions.wait_for(switch, "eu", "us")

        assert regions.withdraw(urls["eu"], first).status_code == 201
        assert regions.withdraw(urls["us"], second).status_code == 409
        assert regions.withdraw(console, third).status_code == 201

        for switch in (at_relay, by_console):
            regions.wait_for(switch, "eu", "us", refuses=False)
        for name in ("eu", "us"):
            assert regions.services[name].refuses(at_console)

    wait_until(regions.house.is_ready, RECOVERY_SECONDS, regions.house.read_output)
    regions.wait_for_state(at_console, "reconciled")
    for switch in (at_relay, by_console):
        regions.wait_for_state(switch, "withdrawn", "withdrawn")
        assert regions.count_episodes(switch) == 0


def test_a_revoked_code_is_refused_and_during_a_cut_its_order_is_refused_later(
    regions: Regions, code: str
) -> None:
    switch, line = SWITCHES[6], regions.lines["eu"]
    line.cut()
    try:
        regions.house.manage("shell", "-c", REVOKE_CODE)
        page = regions.order_by_page(regions.relays["eu"].url, switch, code)
        assert page.status_code == 200
        regions.wait_for(switch, "eu")
    finally:
        line.mend()

    regions.wait_for_state(switch, "refused")
    regions.wait_for(switch, "eu", "us")  # For another ten minutes.
    wait_until(
        lambda: (
            regions.order_by_page(regions.relays["eu"].url, SWITCHES[7], code).status_code == 401
        ),
        5,
    )
    assert regions.count_episodes(switch) == 0


def test_a_revoked_token_gives_no_orders_at_a_relay(regions: Regions) -> None:
    token, url = regions.house.token("switches:emergency"), regions.relays["us"].url
    unknown = {"action": "withdraw", "order": str(uuid4()), "reason": "there is no such order"}
    wait_until(lambda: regions.post(url, unknown, token).status_code == 404, 5)

    regions.house.manage("token", "revoke", token.split("_")[1])

    wait_until(lambda: regions.post(url, unknown, token).status_code == 401, 5)
