"""The data plane alone beside a real installation whose PostgreSQL and Redis stop and die."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from controlplane.dataplane.tests.test_alone import answers, granian
from controlplane.tests.installation import Installation, running, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with running(tmp_path / "var") as one:
        yield one


@pytest.fixture
def operator(installation: Installation) -> Iterator[httpx.Client]:
    with installation.client(installation.token("switches:read", "switches:write")) as one:
        yield one


@pytest.fixture
def service(installation: Installation, operator: httpx.Client) -> Iterator[httpx.Client]:
    """A client of the data plane alone, which finds the services by the data directory."""
    with granian(installation.environment) as (_, url):
        until(lambda: answers(url, "/health/ready/data"), 15)
        with httpx.Client(base_url=url, headers=operator.headers, timeout=5) as client:
            yield client


def engage(operator: httpx.Client, key: str) -> bool:
    body = {"reason": REASON, "expires_in": "24h"}
    answer = operator.post(f"/api/v1/switches/segment/{key}/engage", json=body)
    return answer.status_code == 200


def stopped(service: httpx.Client) -> set[str]:
    return {switch["key"] for switch in service.get("/api/v1/snapshot").json()["switches"]}


def age(service: httpx.Client) -> float:
    answer = service.get("/api/v1/snapshot")
    assert answer.status_code == 200
    return float(answer.headers["Switchgear-Age"])


def test_frozen_postgresql_lets_the_age_grow_and_its_return_is_seen(
    installation: Installation, operator: httpx.Client, service: httpx.Client
) -> None:
    assert engage(operator, "before")
    until(lambda: "before" in stopped(service), 2)

    with installation.suspended("postgres"):
        ages = []
        for _ in range(5):
            time.sleep(1)
            began = time.monotonic()
            ages.append(age(service))
            assert time.monotonic() - began < 0.5
        assert ages == sorted(set(ages))
        assert ages[-1] > 3.5
        assert stopped(service) == {"before"}

    until(lambda: age(service) < 1.5, 5)
    until(lambda: engage(operator, "after"), 15)
    until(lambda: stopped(service) == {"before", "after"}, 2)


def test_killed_postgresql_and_redis_come_back_under_a_process_that_goes_on(
    installation: Installation, operator: httpx.Client, service: httpx.Client
) -> None:
    assert engage(operator, "before")
    until(lambda: "before" in stopped(service), 2)

    os.kill(installation.pid_of("postgres", "-D"), signal.SIGKILL)
    os.kill(installation.pid_of("redis-server"), signal.SIGKILL)
    assert stopped(service) == {"before"}

    until(lambda: engage(operator, "after"), 60, installation.said)
    until(lambda: stopped(service) == {"before", "after"}, 5)
    until(lambda: age(service) < 1.5, 5)
