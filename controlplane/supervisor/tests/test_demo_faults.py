"""`demo` for real: a switch reaches the services, a fault reaches the console, and all ends.

Requests to the services are like those of visitors, requests to the console use its API.
"""

import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from controlplane.supervisor.tests.harness import (
    ROOT,
    Run,
    assert_nothing_left,
    services,
    start,
    wait_until,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

DEMO = [sys.executable, "-m", "controlplane.supervisor", "demo"]
READY_SECONDS = 180
"""For a busy machine; some 20 on an idle one."""
EXPERIMENT = {"user": "u002", "segment": "hr", "intent": "nl2sql"}
COUNTED = """
    SELECT max(m.good), max(m.total) FROM slo_minute m
    JOIN slo_sli i ON i.id = m.sli_id JOIN slo_slo s ON s.id = i.slo_id WHERE s.name = %s
"""


@pytest.fixture
def demo(data: Path) -> Iterator[Run]:
    """A running demo without a scenario, whose services the console has heard from."""
    with start(data, command=DEMO, environment={"DEMO_SCENARIO": "off"}) as run:
        run.wait_for("See the dependency map", READY_SECONDS)
        yield run


@pytest.fixture
def console(demo: Run) -> Iterator[httpx.Client]:
    made = subprocess.run(
        [
            *(sys.executable, "manage.py", "token", "create", "watcher"),
            *("--scopes", "switches:read,switches:write,dlq:read,breakers:read,slo:read"),
        ],
        cwd=ROOT,
        env={**os.environ, "SWITCHGEAR_DATA_DIR": str(demo.data), **addresses(demo)},
        capture_output=True,
        text=True,
        check=True,
    )
    headers = {"Authorization": f"Bearer {made.stdout.split()[-1]}"}
    url = f"http://127.0.0.1:{demo.port}/api/v1"
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        yield client


def addresses(run: Run) -> dict[str, str]:
    names = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")
    return {name: services(run.data)[name.lower()] for name in names}


def core_of(run: Run) -> str:
    found = re.search(r"Break a service +(http://\S+?)/$", run.output, re.MULTILINE)
    assert found is not None
    return found[1]


def oracle_of(run: Run, core: str) -> str:
    """Return the URL of the oracle service, found in its process's environment."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "environ").read_bytes()
        except (OSError, NotADirectoryError):
            continue
        if os.fsencode(run.data) in words and core.rpartition(":")[2].encode() in words:
            found = re.search(rb"DEMO_ORACLE_PORT=(\d+)", words)
            if found:
                return f"http://127.0.0.1:{int(found[1])}"
    raise AssertionError("no service of the demo runs")


def ask(core: str, **question: str) -> tuple[int, dict[str, Any]]:
    answer = httpx.post(f"{core}/ask", json={**EXPERIMENT, **question}, timeout=30)
    return answer.status_code, answer.json()


def counted(run: Run, slo: str) -> tuple[float, float]:
    with psycopg.connect(services(run.data)["database_owner_url"]) as owner:
        good, total = owner.execute(COUNTED, [slo]).fetchone() or (None, None)
    return good or 0, total or 0


def answers(core: str) -> bool:
    try:
        return ask(core)[0] == 200
    except httpx.TransportError:
        return False


@pytest.mark.smoke
def test_a_switch_stops_the_services_and_a_fault_burns_a_budget(
    demo: Run, console: httpx.Client
) -> None:
    core = core_of(demo)
    wait_until(lambda: answers(core), 30, demo)

    def calls_heard_of() -> float:
        rate: float | None = console.get("/switches/feature/nl2sql/preview").json()[
            "calls_per_second"
        ]
        return rate or 0.0

    wait_until(lambda: calls_heard_of() > 0, 60, demo)

    engaged = console.post(
        "/switches/feature/nl2sql/engage",
        json={"reason": "The demo answers with wrong totals", "expires_in": "1h"},
    )
    began = time.monotonic()
    wait_until(lambda: ask(core)[0] == 503, 10, demo)
    reached = time.monotonic() - began

    assert engaged.status_code == 200
    assert reached < 1
    assert ask(core)[1]["reason"] == "The demo answers with wrong totals"
    assert ask(core, intent="ontology")[0] == 200

    def effect() -> tuple[int, int]:
        found = console.get("/switches/feature/nl2sql/").json()["effect"]
        return found["applied"], found["instances"]

    wait_until(lambda: effect() == (3, 3), 20, demo)

    released = {"justification": "The totals are right again", "mode": "immediate"}
    assert console.post("/switches/feature/nl2sql/release", json=released).status_code == 200
    wait_until(lambda: answers(core), 10, demo)
    fault = {"errors": 0.6, "seconds": 120}
    assert httpx.post(f"{oracle_of(demo, core)}/faults", json=fault, timeout=30).status_code == 200

    # By users who were never answered: for others stands what they were told before.
    wait_until(lambda: ask(core, user=f"v{time.monotonic_ns()}")[0] == 500, 30, demo)
    wait_until(lambda: counted(demo, "oracle-answers")[0] > 0, 60, demo)
    good, total = counted(demo, "oracle-answers")
    wait_until(lambda: bad(demo) > total - good + 20, 60, demo)

    code, seconds = demo.end()
    assert code == 0
    assert seconds < 10
    assert_nothing_left(demo)


def test_a_dependency_that_goes_down_shows_in_the_console_and_stops_a_ramp(
    demo: Run, console: httpx.Client
) -> None:
    core = core_of(demo)
    oracle = oracle_of(demo, core)
    experiment = "/switches/experiment/rag-v2"

    def breaker() -> dict[str, Any]:
        rows = console.get("/breakers/").json()["results"]
        return next(row for row in rows if row["name"] == "core->oracle")

    def ramp() -> dict[str, Any]:
        found: dict[str, Any] = console.get(f"/ramps/{number}/").json()
        return found

    wait_until(lambda: breaker()["state"] == "closed", 60, demo)
    request_body = {"reason": "To see a ramp on a breaker", "expires_in": "1h"}
    assert console.post(f"{experiment}/engage", json=request_body).status_code == 200
    gates = [{"type": "breaker", "dependency": "core->oracle"}]
    plan = [{"percent": 5, "dwell_seconds": 3600, "gates": gates}, {"percent": 100}]
    released = {"justification": "To see a ramp on a breaker", "mode": "ramp", "plan": plan}
    started = console.post(f"{experiment}/release", json=released)
    assert started.status_code == 202
    number = started.json()["ramp"]["id"]
    time.sleep(20)  # Visitors fill the breaker's window, and the cache of core.

    # Down, and not killed: the supervisor has it back so quickly that retries bridge it.
    assert httpx.post(f"{oracle}/faults", json={"down": True}, timeout=30).status_code == 200
    began = time.monotonic()
    wait_until(lambda: breaker()["state"] == "open", 10, demo)
    shown = time.monotonic() - began
    wait_until(lambda: console.get("/degradation").json()["level"] == 1, 10, demo)

    assert shown < 1
    wait_until(lambda: ramp()["compensated_at"] is not None, 20, demo)
    assert console.get(f"{experiment}/").json()["allow_percent"] == 0
    wait_until(lambda: counted(demo, "core-whole-answers")[1] > 0, 60, demo)
    wait_until(lambda: partial_answers(demo) > 20, 60, demo)
    assert ask(core, user="nobody knows")[0] == 503
    assert "the breaker core->oracle is open" in demo.output
    demo.wait_for("the ramp of experiment:rag-v2 was aborted, so it is engaged again: A gate")

    demo.end()
    assert "still engaged: experiment:rag-v2 (engaged)" in demo.output
    assert "killswitch release --experiment rag-v2" in demo.output


def partial_answers(run: Run) -> float:
    good, total = counted(run, "core-whole-answers")
    return total - good


def bad(run: Run) -> float:
    good, total = counted(run, "oracle-answers")
    return total - good


def test_a_second_demo_on_the_same_data_keeps_the_token(data: Path) -> None:
    token = data / "demo" / "token"
    texts = []
    for _ in range(2):
        with start(data, command=DEMO, environment={"DEMO_SCENARIO": "off"}) as run:
            run.wait_for("See the dependency map", READY_SECONDS)
            texts.append(token.read_text())
            assert stat.S_IMODE(token.stat().st_mode) == 0o600
            assert texts[0].strip() not in run.output
            assert run.end()[0] == 0

    assert texts[0].startswith("sg_")
    assert texts[0] == texts[1]
