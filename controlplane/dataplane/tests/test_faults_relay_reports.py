"""Reports through real relays that are cut off and killed: each count arrives, and once."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from controlplane.dataplane.tests.lines import Background, Line, background
from controlplane.dataplane.tests.processes import Server, relay
from controlplane.tests.installation import Installation, running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@dataclass
class Chain:
    """An installation, a relay that follows it through `line`, and one that follows the relay."""

    installation: Installation
    line: Line
    first: Server
    second: Server
    token: dict[str, str]

    def fetch(self, statement: str, *arguments: object) -> Any:
        """Return the first column of the first row; None without rows."""
        url = self.installation.services()["database_owner_url"]
        with psycopg.connect(url) as database:
            row = database.execute(statement, arguments).fetchone()
        return None if row is None else row[0]


@pytest.fixture(scope="module")
def loop() -> Iterator[Background]:
    with background() as made:
        yield made


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, loop: Background) -> Iterator[Chain]:
    base = tmp_path_factory.mktemp("region")
    with running(base / "var") as one:
        token = one.token("relay")
        line = Line(loop, "127.0.0.1", one.port)
        with (
            relay(base / "first", token, line.port) as first,
            relay(base / "second", token, int(first.url.rpartition(":")[2])) as second,
        ):
            instance = {"X-API-Key": one.token("switches:read", "report:write")}
            yield Chain(one, line, first, second, instance)


class Instance:
    """An instance that counts 10 checks before each report."""

    def __init__(self, chain: Chain) -> None:
        self.name = f"core/{secrets.token_hex(3)}"
        self.boot, self.started_at = uuid4(), datetime.now(UTC).isoformat()
        self.seq = self.acknowledged = 0
        self._chain = chain

    def report(self, server: Server) -> bool:
        self.seq += 1
        service, _, instance = self.name.partition("/")
        document = {
            "service": service,
            "instance": instance,
            "boot": str(self.boot),
            "started_at": self.started_at,
            "sent_at": datetime.now(UTC).isoformat(),
            "seq": self.seq,
            "checks": [{"switch": "segment:finance", "allowed": 10 * self.seq, "blocked": 0}],
        }
        try:
            answer = httpx.post(
                f"{server.url}/api/v1/report", json=document, headers=self._chain.token, timeout=10
            )
        except httpx.TransportError:
            return False
        if answer.status_code == 200:
            self.acknowledged = self.seq
        return answer.status_code == 200

    def stored(self) -> int | None:
        """Return the stored number of checks."""
        statement = "SELECT checks #>> '{segment:finance,allowed}' FROM core_instance WHERE id = %s"
        found = self._chain.fetch(statement, self.name)
        return None if found is None else int(found)

    def relay(self) -> str | None:
        found: str | None = self._chain.fetch(
            "SELECT relay FROM core_instance WHERE id = %s", self.name
        )
        return found


def check(chain: Chain, server: Server, caller: str) -> None:
    headers = {**chain.token, "Switchgear-Instance": caller}
    body = {"features": ["assistant"]}
    answer = httpx.post(f"{server.url}/api/v1/check", json=body, headers=headers, timeout=5)
    assert answer.status_code == 200, answer.text


def test_report_through_two_relays_is_stored_with_the_name_of_the_last(chain: Chain) -> None:
    instance = Instance(chain)
    began = time.monotonic()
    assert instance.report(chain.second)

    wait_until(lambda: instance.stored() == 10, 10, chain.second.read_output)
    assert instance.relay() == "second"
    assert time.monotonic() - began < 5


def test_reports_outlast_a_cut_and_killed_relays(chain: Chain) -> None:
    instances = [Instance(chain) for _ in range(5)]
    chain.line.cut()
    try:
        for server in (chain.first, chain.second):
            for _ in range(10):
                for instance in instances:
                    assert instance.report(server)
            server.kill()
            server.start()
    finally:
        chain.line.mend()

    def stored() -> list[int | None]:
        return [instance.stored() for instance in instances]

    wait_until(lambda: stored() == [200] * 5, 60, chain.first.read_output)
    assert [instance.acknowledged for instance in instances] == [20] * 5


def test_checks_are_counted_once_although_relays_are_killed(chain: Chain) -> None:
    caller = f"core/{secrets.token_hex(3)}"
    statement = "SELECT checks #>> '{feature:assistant,allowed}' FROM core_instance WHERE id = %s"

    def counted(number: int) -> bool:
        return bool(chain.fetch(statement, caller) == str(number))

    for number in (7, 14, 21):
        for _ in range(7):
            check(chain, chain.second, caller)
        wait_until(partial(counted, number), 30, chain.second.read_output)
        chain.second.kill()
        chain.first.kill()
        chain.first.start()
        chain.second.start()

    time.sleep(3)
    assert counted(21)


def test_relay_that_is_stopped_sends_the_counts_that_it_has(chain: Chain) -> None:
    caller = f"core/{secrets.token_hex(3)}"
    statement = "SELECT checks #>> '{feature:assistant,allowed}' FROM core_instance WHERE id = %s"
    process = chain.second.process
    for _ in range(5):
        check(chain, chain.second, caller)

    process.terminate()
    process.wait(20)

    wait_until(lambda: chain.fetch(statement, caller) == "5", 10, chain.second.read_output)
    is_stopped = "SELECT is_stopped FROM core_dataplane WHERE name = 'second'"
    wait_until(lambda: chain.fetch(is_stopped), 10, chain.first.read_output)
    chain.second.start()


def test_both_relays_have_rows_of_their_own_that_survive_restarts(chain: Chain) -> None:
    statement = "SELECT count(*) FROM core_dataplane WHERE is_relay"
    upstream = "SELECT upstream FROM core_dataplane WHERE name = %s"

    wait_until(lambda: chain.fetch(upstream, "second") == "first", 20, chain.second.read_output)
    assert chain.fetch(statement) == 2
