"""Ramps of a whole installation: started over HTTP, observed as services see them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby, pairwise

import httpx
import psycopg

from controlplane.tests.installation import Installation, wait_until

REASON = "provider outage, 5xx on completions since 02:10"
WHY = "provider confirmed the fix, load test passed"
PERCENTS = (5, 25, 100)
SCOPES = ("switches:read", "switches:write", "ramps:write", "gates:write")
LOOK_EVERY_SECONDS = 0.03


class Ramp:
    """A ramp of three steps of `dwell` seconds; the second has the gate named `gate`, if any."""

    def __init__(
        self, installation: Installation, client: httpx.Client, key: str, dwell: float, gate: str
    ) -> None:
        self._installation = installation
        self._client = client
        self.switch, self.dwell, self.gate = f"feature:{key}", dwell, gate
        self.path = f"/api/v1/switches/feature/{key}"
        self.engage()
        gates = [{"type": "external", "gate": gate}] if gate else []
        plan = [{"percent": percent, "dwell_seconds": dwell} for percent in PERCENTS]
        plan[1]["gates"] = gates
        answer = insist(client, f"{self.path}/release", {"justification": WHY, "plan": plan})
        assert answer.status_code == 202, answer.text
        self.id = answer.json()["ramp"]["id"]

    def engage(self) -> httpx.Response:
        answer = insist(
            self._client, f"{self.path}/engage", {"reason": REASON, "expires_in": "24h"}
        )
        assert answer.status_code == 200, answer.text
        return answer

    def report(self, verdict: str) -> None:
        path = f"/api/v1/gates/{self.gate}"
        answer = insist(self._client, path, {"verdict": verdict, "evidence": {"errors": 12}})
        assert answer.status_code in {200, 201}, answer.text

    def rows(self, query: str) -> list[tuple]:
        with psycopg.connect(self._installation.services()["database_owner_url"]) as database:
            return database.execute(query, [self.id]).fetchall()

    def state(self) -> str:
        return self.rows("SELECT state FROM core_job WHERE id = %s")[0][0]

    def is_over(self) -> bool:
        try:
            return self.state() in {"completed", "cancelled"}
        except psycopg.OperationalError:
            return False

    def began(self) -> list[datetime]:
        """Return the start times of the steps that have started."""
        return [
            at
            for (at,) in self.rows(
                "SELECT started_at FROM core_jobstep WHERE job_id = %s AND started_at IS NOT NULL"
                " ORDER BY index"
            )
        ]

    def late(self) -> list[float]:
        """Return the seconds by which each step was later than planned, except for the way back."""
        ended = self.rows("SELECT finished_at FROM core_job WHERE id = %s AND state = 'completed'")
        moments = [*self.began(), *(at for (at,) in ended)]
        return [
            (after - before).total_seconds() - self.dwell for before, after in pairwise(moments)
        ]

    def actions(self) -> list[str]:
        found = self.rows(
            "SELECT action FROM core_auditentry JOIN switches_ramp ON target = switch_id"
            " WHERE job_id = %s ORDER BY id"
        )
        return [action for (action,) in found]


class Watched:
    """Records the published state of some switches and the time of each change."""

    def __init__(self, client: httpx.Client, ramps: list[Ramp]) -> None:
        self._client = client
        self._ramps = ramps
        self._seen: dict[str, list[tuple[float, float | None]]] = {r.switch: [] for r in ramps}

    def look(self) -> None:
        try:
            response = self._client.get("/api/v1/snapshot")
        except httpx.TransportError:
            return
        at = time.time()
        if response.status_code == 200:
            entries = {one["id"]: one["allow_percent"] for one in response.json()["switches"]}
            for switch, seen in self._seen.items():
                seen.append((at, entries.get(switch)))

    def percents(self, ramp: Ramp) -> list[float | None]:
        """Each share in turn since it began, without repeats; None once it is released."""
        told = [percent for percent, _ in groupby(self._seen[ramp.switch], lambda one: one[1])]
        return told[1:] if told[:1] == [0] else told

    def now(self, ramp: Ramp) -> float | None:
        seen = self._seen[ramp.switch]
        return seen[-1][1] if seen else None

    def assert_never_above_plan(self, ramp: Ramp) -> None:
        began = dict(zip(PERCENTS, ramp.began(), strict=False))
        for at, percent in self._seen[ramp.switch]:
            if percent:
                assert percent in began, f"{percent} % was never begun"
                assert at > began[percent].timestamp() - 0.01, f"{percent} % too early"


@contextmanager
def watching(client: httpx.Client, *ramps: Ramp) -> Iterator[Watched]:
    """Poll the snapshot continuously, as fast as a service may."""
    watched, over = Watched(client, list(ramps)), threading.Event()

    def run() -> None:
        while not over.wait(LOOK_EVERY_SECONDS):
            watched.look()

    thread = threading.Thread(target=run, daemon=True)
    watched.look()
    thread.start()
    try:
        yield watched
    finally:
        over.set()
        thread.join()


def insist(client: httpx.Client, path: str, body: dict) -> httpx.Response:
    """Retry while the response is a 503 for a missing database."""
    answers: list[httpx.Response] = []

    def answered() -> bool:
        try:
            answers.append(client.post(path, json=body))
        except httpx.TransportError:
            return False
        return answers[-1].status_code != 503

    wait_until(answered, 60, lambda: answers[-1:])
    return answers[-1]
