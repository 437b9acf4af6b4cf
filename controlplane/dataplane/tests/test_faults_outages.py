"""PostgreSQL or Redis gone, hung or emptied: observations of pollers throughout."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

import httpx
import pytest
import redis

from controlplane.dataplane.tests.lines import background
from controlplane.dataplane.tests.processes import Server, addresses, data_plane, killed
from controlplane.dataplane.tests.watch import Watch, watching
from controlplane.tests.installation import Installation, running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"
OUTAGE_SECONDS = 4.0
NOTICED_SECONDS = 4.0
"""Extra time until a silent database is reported as lost: two deadlines in all."""
POLL_SECONDS = 1.5
"""A change by polling alone: within a second, and what a busy test machine adds."""
RECOVERY_SECONDS = 15.0

_keys = count(1)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with running(tmp_path_factory.mktemp("house") / "var") as one:
        yield one


@pytest.fixture(scope="module")
def operator(house: Installation) -> Iterator[httpx.Client]:
    with house.client(house.token("switches:read", "switches:write")) as one:
        yield one


@pytest.fixture(scope="module")
def alone(house: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with data_plane(addresses(house), tmp_path_factory.mktemp("alone") / "data") as one:
        yield one


@pytest.fixture
def watch(house: Installation, operator: httpx.Client, alone: Server) -> Iterator[Watch]:
    """Pollers of the standalone data plane and of the one in the web process, healthy at first."""
    wait_until(
        lambda: operator.get("/health/ready").json()["status"] == "ready", 40, house.read_output
    )
    token = {"Authorization": operator.headers["Authorization"]}
    with background() as loop, watching(loop, token, [alone.url], [house.url]) as one:
        one.until_all_have(engaged(operator), 5)
        yield one


def engaged(operator: httpx.Client) -> int:
    """Engage one more segment; return the published version."""
    body = {"reason": REASON, "expires_in": "24h"}
    response = operator.post(f"/api/v1/switches/segment/s{next(_keys)}/engage", json=body)
    assert response.status_code == 200, response.text
    version: int = response.json()["version"]
    return version


def engaged_again(operator: httpx.Client, seconds: float) -> int:
    """Engage one more segment, retrying until it is possible again."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            return engaged(operator)
        except (AssertionError, httpx.TransportError):
            time.sleep(0.1)
    return engaged(operator)


def levels(operator: httpx.Client, alone: Server) -> set[int]:
    """Return the degradation level that each data plane reports."""
    urls = (alone.url, str(operator.base_url).rstrip("/"))
    return {operator.get(f"{url}/api/v1/degradation").json()["level"] for url in urls}


def flush(installation: Installation) -> None:
    with redis.from_url(installation.services()["redis_url"]) as client:
        client.flushall()


@contextmanager
def flushed_again_and_again(installation: Installation) -> Iterator[None]:
    flush(installation)
    yield
    flush(installation)


Fault = Callable[[Installation], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("fault", "level"),
    [
        (lambda house: killed(house, "redis-server"), 2),
        (lambda house: house.suspended("redis-server"), 2),
        (flushed_again_and_again, 0),
    ],
    ids=["down", "hung", "flushed"],
)
def test_redis_away_costs_no_more_than_a_poll(
    house: Installation,
    operator: httpx.Client,
    alone: Server,
    watch: Watch,
    fault: Fault,
    level: int,
) -> None:
    with fault(house):
        for _ in range(3):
            watch.until_all_have(engaged(operator), POLL_SECONDS)
            time.sleep(0.3)
        # It takes over ten seconds to distinguish a hung server from a silent one.
        wait_until(lambda: levels(operator, alone) == {level}, 16, lambda: levels(operator, alone))

    wait_until(lambda: levels(operator, alone) == {0}, RECOVERY_SECONDS, alone.read_output)
    watch.until_all_have(engaged(operator), POLL_SECONDS)
    watch.judge(recovers_within=0)


@pytest.mark.parametrize(
    "fault",
    [
        lambda house: killed(house, "postgres"),
        lambda house: house.suspended("postgres"),
    ],
    ids=["down", "hung"],
)
def test_postgresql_away_lets_the_age_grow_and_nothing_else(
    house: Installation, operator: httpx.Client, alone: Server, watch: Watch, fault: Fault
) -> None:
    before = dict(watch.has)
    with fault(house):
        with watch.database_away():
            time.sleep(OUTAGE_SECONDS)
            wait_until(lambda: levels(operator, alone) == {3}, NOTICED_SECONDS, alone.read_output)
        assert watch.has == before
        ended = time.monotonic()

    watch.until_all_have(engaged_again(operator, RECOVERY_SECONDS), 3)
    print(f"served again {time.monotonic() - ended:.1f} s after the end of the outage")
    wait_until(lambda: levels(operator, alone) == {0}, RECOVERY_SECONDS, alone.read_output)
    time.sleep(1)
    watch.judge(recovers_within=RECOVERY_SECONDS)


def test_both_hung_at_once_and_back_in_any_order(
    house: Installation, operator: httpx.Client, alone: Server, watch: Watch
) -> None:
    with house.suspended("redis-server"):
        with house.suspended("postgres"), watch.database_away():
            time.sleep(OUTAGE_SECONDS)
            wait_until(lambda: levels(operator, alone) == {3}, NOTICED_SECONDS, alone.read_output)
        watch.until_all_have(engaged_again(operator, RECOVERY_SECONDS), POLL_SECONDS)

    watch.until_all_have(engaged(operator), POLL_SECONDS)
    time.sleep(1)
    watch.judge(recovers_within=RECOVERY_SECONDS)
