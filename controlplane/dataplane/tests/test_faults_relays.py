"""Relays as real processes, with nothing but their upstream, behind a real installation."""

import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from controlplane.dataplane.tests.lines import Background, Line, background
from controlplane.dataplane.tests.processes import Server, relay
from controlplane.tests.installation import Installation, running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"

_keys = count(1)


@dataclass
class Chain:
    """An installation, a relay behind a line, and one that follows it behind another line."""

    installation: Installation
    operator: httpx.Client
    token: dict[str, str]
    lines: tuple[Line, Line]
    relays: tuple[Server, Server]

    def engage(self) -> int:
        """Engage a new segment; return its version."""
        key = f"s{next(_keys)}"
        path = f"/api/v1/switches/segment/{key}/engage"
        answer = self.operator.post(path, json={"reason": REASON, "expires_in": "24h"})
        assert answer.status_code == 200, answer.text
        version: int = answer.json()["version"]
        return version

    def wait_until(self, condition: Callable[[Server], bool], seconds: float) -> None:
        """Wait until both relays meet the condition."""
        for server in self.relays:
            wait_until(partial(condition, server), seconds, server.read_output)

    def get(self, server: Server, path: str = "/api/v1/snapshot") -> httpx.Response:
        return httpx.get(server.url + path, headers=self.token, timeout=5)

    def serves(self, server: Server, version: int) -> bool:
        return bool(self.get(server).json().get("version", -1) >= version)

    def age(self, server: Server) -> float:
        return float(self.get(server).headers["Switchgear-Age"])

    def causes(self, server: Server) -> list[str]:
        effects = self.get(server, "/api/v1/degradation").json()["effects"]
        return [effect["what"] for effect in effects]


@pytest.fixture(scope="module")
def loop() -> Iterator[Background]:
    with background() as made:
        yield made


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, loop: Background) -> Iterator[Chain]:
    base = tmp_path_factory.mktemp("region")
    with running(base / "var") as one:
        reader = {"X-API-Key": one.token("switches:read")}
        token = one.token("relay")
        first_line = Line(loop, "127.0.0.1", one.port)
        with relay(base / "first", token, first_line.port) as first:
            second_line = Line(loop, "127.0.0.1", int(first.url.rpartition(":")[2]))
            with (
                relay(base / "second", token, second_line.port) as second,
                one.client(
                    one.token(
                        "switches:read",
                        "switches:write",
                    )
                ) as operator,
            ):
                yield Chain(one, operator, reader, (first_line, second_line), (first, second))


@contextmanager
def cut(line: Line) -> Iterator[None]:
    line.cut()
    try:
        yield
    finally:
        line.mend()


def test_a_change_reaches_both_relays_in_well_under_a_second(chain: Chain) -> None:
    version = chain.engage()
    began = time.monotonic()

    chain.wait_until(lambda server: chain.serves(server, version), 5)

    assert time.monotonic() - began < 0.9


def test_they_serve_the_same_signed_bytes(chain: Chain) -> None:
    version = chain.engage()
    chain.wait_until(lambda server: chain.serves(server, version), 5)

    own = chain.operator.get("/api/v1/snapshot")
    for server in chain.relays:
        answer = chain.get(server)
        assert answer.content == own.content
        assert answer.headers["Switchgear-Signature"] == own.headers["Switchgear-Signature"]
        assert chain.get(server, "/api/v1/keys").json() == chain.operator.get("/api/v1/keys").json()


def test_they_have_no_secret_key_and_no_database(chain: Chain) -> None:
    for server in chain.relays:
        assert not any(
            name in server.environment for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")
        )
        secrets_of = Path(server.environment["SWITCHGEAR_DATA_DIR"], "secrets")
        names = {path.name for path in secrets_of.iterdir()}
        assert names == {"relay_key", "upstream_keys.json"}


def test_a_revoked_token_is_refused_on_both(chain: Chain) -> None:
    name = f"revoked-{secrets.token_hex(3)}"
    made = chain.installation.manage("token", "create", name, "--scopes", "switches:read")
    headers = {"X-API-Key": made.split()[-1]}

    def status(server: Server) -> int:
        return httpx.get(server.url + "/api/v1/snapshot", headers=headers, timeout=5).status_code

    chain.wait_until(lambda server: status(server) == 200, 5)

    chain.installation.manage("token", "revoke", headers["X-API-Key"].split("_")[1])

    began = time.monotonic()
    chain.wait_until(lambda server: status(server) == 401, 5)
    assert time.monotonic() - began < 1.5


def test_behind_a_cut_the_ages_add_up_and_all_converge_after_it(chain: Chain) -> None:
    first, second = chain.relays
    before = chain.get(second).json()["version"]
    with cut(chain.lines[0]):
        cut_at = time.monotonic()
        wait_until(lambda: chain.causes(first) == ["upstream"], 10, first.read_output)
        version = chain.engage()
        time.sleep(4)

        for server in chain.relays:
            assert chain.get(server).json()["version"] == before
            assert chain.age(server) >= time.monotonic() - cut_at - 0.5
        assert chain.age(second) < time.monotonic() - cut_at + 6
        assert "postgresql" in chain.causes(second)

    chain.wait_until(lambda server: chain.serves(server, version), 8)
    chain.wait_until(lambda server: chain.age(server) < 4.5, 8)
    chain.wait_until(lambda server: chain.causes(server) == [], 8)


def test_a_frozen_connection_ages_too(chain: Chain) -> None:
    first, _ = chain.relays
    line = chain.lines[0]
    line.freeze()
    try:
        frozen_at = time.monotonic()
        time.sleep(3)
        assert chain.age(first) >= time.monotonic() - frozen_at - 0.5
    finally:
        line.thaw()
    wait_until(lambda: chain.age(first) < 2.5, 8, first.read_output)


def test_restarted_without_its_upstream_it_answers_within_a_second(chain: Chain) -> None:
    first, _ = chain.relays
    version = chain.engage()
    wait_until(lambda: chain.serves(first, version), 5, first.read_output)
    body = chain.get(first).content
    with cut(chain.lines[0]):
        down_since = time.monotonic()
        first.kill()

        first.start()

        cpu_seconds = first.cpu_seconds()
        answer = chain.get(first)
        assert (answer.status_code, answer.content) == (200, body)
        assert float(answer.headers["Switchgear-Age"]) >= time.monotonic() - down_since - 1
        assert chain.get(first, "/health/ready/data").json()["source"] == "disk"
    # Unlike the time that passes, it hardly depends on what else runs on the machine.
    assert cpu_seconds < 1.5
    wait_until(lambda: chain.age(first) < 2.5, 8, first.read_output)


def test_a_stop_answers_open_requests_and_is_clean(chain: Chain) -> None:
    _, second = chain.relays
    assert second.process is not None

    second.process.send_signal(signal.SIGTERM)
    assert second.process.wait(10) == 0

    second.start()


def test_several_workers_share_one_folder(chain: Chain, tmp_path: Path) -> None:
    token = chain.installation.token("relay")
    with relay(tmp_path / "workers", token, chain.installation.port, workers=2) as server:
        assert len(server.workers()) == 2
        version = chain.engage()
        for _ in range(10):
            wait_until(lambda: chain.serves(server, version), 5, server.read_output)
    assert server.logged("dataplane.save_failed") == []


def test_a_token_without_the_scope_is_said_clearly(chain: Chain, tmp_path: Path) -> None:
    token = chain.token["X-API-Key"]
    with relay(tmp_path / "wrong", token, chain.installation.port, start=False) as server:
        server.start(ready="/health/live")

        wait_until(lambda: server.logged("relay.token_refused") != [], 5, server.read_output)
        assert httpx.get(server.url + "/health/ready/data").status_code == 503
