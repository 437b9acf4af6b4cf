"""500 parallel changes with the web process killed twice: nothing acknowledged is lost."""

import json
import os
import random
import signal
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest

from controlplane.tests.installation import running, wait_until

SWITCHES = 50
OPERATIONS = 500
REASON = "provider outage, 5xx on completions since 02:10"


@dataclass
class Asked:
    """A request of the storm and its final answer, after any number of retries."""

    path: str
    body: dict[str, str]
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: int = 0
    answer: dict[str, object] = field(default_factory=dict)
    attempts: int = 0

    def post(self, client: httpx.Client) -> httpx.Response:
        return client.post(self.path, json=self.body, headers={"Idempotency-Key": self.key})

    def insist(self, client: httpx.Client, give_up_at: float) -> None:
        while time.monotonic() < give_up_at:
            self.attempts += 1
            try:
                response = self.post(client)
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            if response.status_code != 503:
                self.status, self.answer = response.status_code, response.json()
                return
            time.sleep(0.1)


def storm() -> list[Asked]:
    draw = random.Random(20261121)
    requests_made = []
    for number in range(OPERATIONS):
        path = f"/api/v1/switches/feature/f{number % SWITCHES}"
        if draw.random() < 0.5:
            requests_made.append(Asked(f"{path}/engage", {"reason": REASON, "expires_in": "24h"}))
        else:
            body = {"justification": "cause fixed, verified twice", "mode": "immediate"}
            requests_made.append(Asked(f"{path}/release", body))
    draw.shuffle(requests_made)
    return requests_made


def kill_web_twice(installation, asked: list[Asked]) -> None:
    for share in (0.25, 0.6):
        wait_until(lambda: sum(a.status > 0 for a in asked) > OPERATIONS * share, 120)  # noqa: B023
        os.kill(installation.pid_of("granian"), signal.SIGKILL)


@pytest.mark.faults
@pytest.mark.smoke
@pytest.mark.timeout(400)
def test_every_acknowledged_change_survives_two_kills_of_the_web_process(tmp_path):
    with running(tmp_path / "var") as installation:
        client = installation.client(
            installation.token("switches:read", "switches:write", "audit:read")
        )
        asked = storm()
        killer = threading.Thread(target=kill_web_twice, args=(installation, asked))
        killer.start()
        with ThreadPoolExecutor(16) as pool:
            give_up_at = time.monotonic() + 240
            list(pool.map(lambda one: one.insist(client, give_up_at), asked))
        killer.join()

        assert Counter(one.status for one in asked).keys() == {200, 409}
        assert any(one.attempts > 1 for one in asked), "the kills hit no request"
        done = [one for one in asked if one.status == 200]

        rows = audit_rows(client)
        versions = [row["after"]["version"] for row in rows]
        assert versions == list(range(1, len(versions) + 1))
        assert len(done) == len(rows)
        assert sorted(one.answer["version"] for one in done) == versions
        assert client.get("/api/v1/snapshot").json()["version"] == versions[-1]
        check_states(client, rows)

        for one in random.Random(1).sample(done, 40):
            again = one.post(client)
            assert (again.status_code, again.json()) == (200, one.answer)
        assert len(audit_rows(client)) == len(rows)
        assert "intact" in installation.manage("audit", "verify")


def audit_rows(client: httpx.Client) -> list[dict]:
    """The `switch.*` rows of the trail, oldest first."""
    text = client.get("/api/v1/audit/export", params={"format": "jsonl"}).text
    rows = [json.loads(line) for line in text.splitlines()]
    changes = [row for row in rows if row["action"].startswith("switch.")]
    return [{**row, "after": _plain(row["after"])} for row in changes]


def check_states(client: httpx.Client, rows: list[dict]) -> None:
    """Assert that the audit trail and the snapshot agree on each switch's state."""
    told = {row["target"]: row["after"]["state"] for row in rows}
    published = {entry["id"] for entry in client.get("/api/v1/snapshot").json()["switches"]}
    assert published == {switch for switch, state in told.items() if state == "engaged"}


def _plain(value: object) -> dict:
    return json.loads(value) if isinstance(value, str) else value
