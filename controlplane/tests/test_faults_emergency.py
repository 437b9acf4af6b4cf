"""Emergency orders with real processes: all but the data planes killed, and later back again."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest

from controlplane.dataplane.tests.processes import ROOT, Server, addresses, data_plane, killed
from controlplane.notify.delivery.tests.fake_slack import FakeSlack, fake_slack
from controlplane.tests.installation import Installation, free_port, running, wait_until
from controlplane.tests.plane_pollers import PlanePollers, Service, service
from switches.snapshot import POLL_SECONDS

pytestmark = [pytest.mark.faults, pytest.mark.smoke, pytest.mark.timeout(300)]
NAMES = ("dp-1", "dp-2", "dp-3")
SWITCHES = ("feature:chat", "feature:mail", "segment:finance")
REASON = "OpenAI 5xx on completions since 02:10"
EFFECT_SECONDS = 1.5
SERVICES = {"streaming": ("dp-2", 0.0), "far": ("dp-3", 0.0), "polling": ("dp-3", POLL_SECONDS)}
"""By name: the only plane that a service hears, and the seconds between its polls, if it polls."""
RECOVERY_SECONDS = 60.0
CREATE_CODE = """
from django.utils import timezone
from controlplane.accounts.emergency_codes import services
from controlplane.accounts.models.people import User
user = User.objects.get(username="admin")
print("code:", services.create_code(user=user, actor=user.as_actor(), now=timezone.now()))
"""


@dataclass
class Planes:
    """Three data planes, what watches them, and the orders that were accepted."""

    servers: dict[str, Server]
    pollers: PlanePollers
    services: dict[str, Service]
    token: str
    code: str
    accepted: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By switch: the plane that accepted its order, and the UNIX time of the answer."""

    def order_by_page(self, plane: str, switch: str) -> None:
        form = {
            "action": "engage",
            "nonce": str(uuid4()),
            "typed_switch": switch,
            "reason": REASON,
            "name": "admin",
            "code": self.code,
        }
        answer = httpx.post(f"{self.servers[plane].url}/emergency/", data=form, timeout=10)
        assert answer.status_code == 200, answer.text
        self.accepted[switch] = plane, time.time()

    def order_by_cli(self, plane: str, switch: str, console: str) -> None:
        variables = {
            "SWITCHGEAR_URL": console,
            "SWITCHGEAR_TOKEN": self.token,
            "SWITCHGEAR_PLANES": self.servers[plane].url,
        }
        done = subprocess.run(
            [sys.executable, "-m", "switchgear", "kill", switch, "--reason", REASON],
            cwd=ROOT / "client",
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.accepted[switch] = plane, time.time()

    def order_by_api(self, plane: str, switch: str) -> None:
        body = {"action": "engage", "switch": switch, "reason": REASON, "expires_in": "24h"}
        answer = self._request("POST", plane, "/api/v1/emergency/orders", json=body)
        self.accepted[switch] = plane, time.time()
        assert answer.status_code == 201, answer.text
        assert answer.json()["accepted_by"] == list(NAMES)
        assert answer.json()["planes"] >= len(NAMES)

    def read_orders(self, plane: str) -> dict[str, list[str]]:
        """Return the ids of open and closed orders in the plane's snapshot."""
        snapshot = self._request("GET", plane, "/api/v1/snapshot").json()
        found: dict[str, list[str]] = snapshot.get("emergency", {"open": [], "closed": []})
        return found

    def restart(self, plane: str) -> None:
        self.servers[plane].kill()
        self.servers[plane].start()

    def _request(self, method: str, plane: str, path: str, **more: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.servers[plane].url}{path}"
        return httpx.request(method, url, headers=headers, timeout=10, **more)


@pytest.fixture(scope="module")
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as fake:
        yield fake


@pytest.fixture(scope="module")
def urls() -> dict[str, str]:
    return {name: f"http://127.0.0.1:{free_port()}" for name in NAMES}


@pytest.fixture(scope="module")
def house(
    tmp_path_factory: pytest.TempPathFactory, slack: FakeSlack, urls: dict[str, str]
) -> Iterator[Installation]:
    variables = {
        "SECRET_KEY": uuid4().hex * 2,
        "PLANE_NAME": "console",
        "DATA_PLANES": " ".join(urls.values()),
        "SLACK_API_URL": f"{slack.url}/api",
        "SLACK_BOT_TOKEN": "xoxb-1234-secret",
        "SLACK_CHANNEL": "C0000OPS",
    }
    with running(tmp_path_factory.mktemp("house") / "var", **variables) as one:
        yield one


@pytest.fixture(scope="module")
def planes(house: Installation, urls: dict[str, str], tmp_path_factory) -> Iterator[Planes]:  # type: ignore[no-untyped-def]
    folder: Path = tmp_path_factory.mktemp("planes")
    token = house.token("switches:read", "switches:emergency", "report:write")
    found = re.search(r"^code: (\S+)$", house.manage("shell", "-c", CREATE_CODE), re.MULTILINE)
    assert found is not None
    with ExitStack() as stack:
        servers = {}
        for name, url in urls.items():
            variables = {**addresses(house), "PLANE_NAME": name}
            port = int(url.rpartition(":")[2])
            servers[name] = stack.enter_context(data_plane(variables, folder / name, port=port))

        services = {
            name: stack.enter_context(
                service(
                    *(urls[plane], token, SWITCHES),
                    name=name,
                    stream=not poll_seconds,
                    output=folder / f"{name}.log",
                )
            )
            for name, (plane, poll_seconds) in SERVICES.items()
        }
        pollers = stack.enter_context(PlanePollers(urls, token))
        wait_until(lambda: all(each.read_log() for each in services.values()), 30)
        wait_until(lambda: all(pollers.has(name, ()) for name in NAMES), 30)
        yield Planes(servers, pollers, services, token, found[1])


def test_orders_need_one_data_plane_and_end_as_episodes(
    house: Installation, planes: Planes, slack: FakeSlack
) -> None:
    with killed(house, "postgres", "redis-server", "granian", "celery", "watchdog"):
        wait_until(lambda: not house.tree() or not _running(house), 10, house.tree)
        planes.order_by_page("dp-1", "feature:chat")
        planes.order_by_cli("dp-2", "feature:mail", house.url)
        planes.order_by_api("dp-3", "segment:finance")
        for one in planes.services.values():
            wait_until(lambda one=one: all(map(one.refuses, SWITCHES)), 10, one.read_log)
        for name in NAMES:
            planes.restart(name)
        wait_until(lambda: all(planes.pollers.has(name, SWITCHES) for name in NAMES), 10)

    wait_until(house.is_ready, RECOVERY_SECONDS, house.read_output)
    for name in NAMES:
        wait_until(
            lambda name=name: len(planes.read_orders(name)["closed"]) == len(SWITCHES),
            RECOVERY_SECONDS,
            lambda name=name: (planes.read_orders(name), house.read_output()),
        )
        assert planes.read_orders(name)["open"] == []
    wait_until(
        lambda: set(_find_announced(slack)) == set(SWITCHES), RECOVERY_SECONDS, lambda: slack.texts
    )
    time.sleep(2)

    _check_database(house)
    assert house.manage("audit", "verify").startswith("intact: ")
    assert sorted(_find_announced(slack)) == sorted(SWITCHES)
    for switch, (accepting, at) in planes.accepted.items():
        for name, one in planes.services.items():
            refused_at = one.refused_at(switch)
            assert refused_at - at < EFFECT_SECONDS + SERVICES[name][1], name
            assert all(switch in keys for since, keys in one.read_log() if since > refused_at)
        for name in NAMES:
            grace = 0.0 if name == accepting else EFFECT_SECONDS
            assert planes.pollers.find_released(name, switch, at + grace) == []


def _running(house: Installation) -> list[str]:
    words = ("postgres", "redis-server", "granian", "celery")
    return [line for line in house.tree().values() if any(word in line for word in words)]


def _find_announced(slack: FakeSlack) -> list[str]:
    """Return the switch of each message about an engagement by an emergency order."""
    texts = [text for text in slack.texts if "during the outage" in text.lower()]
    return [switch for text in texts for switch in SWITCHES if switch in text]


def _check_database(house: Installation) -> None:
    """Check that each order has one episode, one audit row and one review."""
    with psycopg.connect(house.services()["database_owner_url"]) as database:
        for table, switch_of, condition in (
            ("switches_episode", "switch_id", "ended_at IS NULL"),
            ("core_auditentry", "target", "action = 'switch.engaged'"),
            ("core_approval", "target", "kind = 'break_glass_review' AND state = 'pending'"),
            ("switches_emergencyorder", "switch", "state = 'reconciled'"),
        ):
            query = f"SELECT {switch_of} FROM {table} WHERE {condition}"
            found = sorted(row[0] for row in database.execute(query))
            assert found == sorted(SWITCHES), table
