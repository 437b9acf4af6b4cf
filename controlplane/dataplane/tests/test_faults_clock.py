"""A data plane whose local clock is wrong or adjusted: only the log shows it."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from controlplane.core.actors import system_actor
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.processes import Server, data_plane, kept_version
from controlplane.dataplane.tests.test_alone import variables
from controlplane.dataplane.tests.test_following import engage, make_token
from controlplane.dataplane.tests.watch import Watch, watching
from controlplane.tests.installation import wait_until
from switches import services
from switchgear import Switchgear

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
TOKEN = {"X-API-Key": "sg_reader0001_secret"}
AN_HOUR = 3600.0
BOTH = ("current", "policies")
"""Files of a data plane: the state, and the services' policies."""
GRACE_SECONDS = 5.0
"""Time that a client keeps blocking after the end of an episode that releases then."""


class Clock:
    """The clock of one process, in seconds ahead of the real one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, ahead: float) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(str(ahead))
        draft.replace(self._file)

    def variables(self) -> dict[str, str]:
        folder = Path(__file__).parent / "wrong_clock"
        return {"WRONG_CLOCK": str(self._file), "PYTHONPATH": str(folder)}


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def plane(idle: Following, clock: Clock, tmp_path: Path) -> Iterator[Server]:
    """A plane that is not started, and follows the test database through a proxy."""
    make_token()
    environment = {**variables(idle, tmp_path), **clock.variables()}
    with data_plane(environment, tmp_path / "data", start=False) as server:
        yield server


@pytest.fixture
def watch(idle: Following, plane: Server) -> Iterator[Watch]:
    with watching(idle.loop, TOKEN, [plane.url]) as one:
        yield one


def engage_until(key: str, expires_in: str) -> int:
    done = services.engage(
        scope="segment",
        key=key,
        reason="Payment provider returns wrong totals, INC-7",
        expires_in=expires_in,
        on_expiry="release",
        actor=system_actor("test"),
        now=timezone.now(),
    )
    return done.switch.version


def is_blocked(plane: Server, key: str) -> bool:
    body = {"segments": [key]}
    response = httpx.post(f"{plane.url}/api/v1/check", headers=TOKEN, json=body)
    assert response.status_code == 200
    return not response.json()["allowed"]


def admits(plane: Server, prefix: str) -> bool:
    token = {"X-API-Key": f"sg_{prefix}_secret"}
    return httpx.get(f"{plane.url}/api/v1/snapshot", headers=token).status_code == 200


def last_skew(plane: Server) -> float:
    logged = plane.logged("dataplane.clock_skewed")
    return float(logged[-1]["ahead_seconds"]) if logged else 0.0


def near(seconds: float) -> Callable[[float], bool]:
    return lambda found: abs(found - seconds) < 60


def test_a_clock_that_is_ahead_and_then_set_back_decides_nothing(
    plane: Server, clock: Clock, watch: Watch
) -> None:
    make_token("halfhour01", name="half", expires_at=timezone.now() + timedelta(minutes=30))
    engage_until("halfhour", "30m")
    clock.set(AN_HOUR)
    with watch.may_break():
        plane.start()
    wait_until(lambda: near(AN_HOUR)(last_skew(plane)), 5, plane.read_output)
    assert admits(plane, "halfhour01")
    assert is_blocked(plane, "halfhour")

    ends = timezone.now() + timedelta(seconds=5)
    make_token("ending0001", name="ending", expires_at=ends)
    version = engage_until("ending", "4s")
    watch.until_all_have(version, 3)
    clock.set(0)
    time.sleep(1)
    clock.set(-AN_HOUR)
    assert is_blocked(plane, "ending")
    assert admits(plane, "ending0001")
    watch.until_all_have(engage("later"), 3)

    seconds_left = (ends - timezone.now()).total_seconds()
    time.sleep(max(0.0, seconds_left + GRACE_SECONDS))
    assert not admits(plane, "ending0001")
    assert not is_blocked(plane, "ending")
    assert is_blocked(plane, "halfhour")
    wait_until(lambda: near(-AN_HOUR)(last_skew(plane)), 5, plane.read_output)
    watch.judge(recovers_within=0)


@pytest.mark.parametrize("ahead", [600.0, -600.0])
def test_a_client_of_a_plane_with_a_wrong_clock_ends_an_engagement_by_postgresql(
    plane: Server, clock: Clock, ahead: float
) -> None:
    clock.set(ahead)
    plane.start()
    engage_until("finance", "6s")
    ends = time.monotonic() + 6 + GRACE_SECONDS
    with Switchgear(plane.url, TOKEN["X-API-Key"], service="core", stream=False) as gear:
        assert gear.wait_ready(5)
        wait_until(lambda: gear._store.clock.release_now() is not None, 15, plane.read_output)
        blocked_seconds = 0.0
        while time.monotonic() < ends + 5 and not gear.allowed(segment="finance"):
            blocked_seconds = time.monotonic() - ends
            time.sleep(0.05)

    assert blocked_seconds > -1.0
    assert gear.allowed(segment="finance")
    response = httpx.get(f"{plane.url}/api/v1/snapshot", headers=TOKEN)
    date = parsedate_to_datetime(response.headers["Date"])
    assert response.headers.get_list("Date") == [response.headers["Date"]]
    assert abs((date - timezone.now()).total_seconds()) < 3


def test_a_clock_set_back_while_the_database_is_away_leaves_the_age_alone(
    idle: Following, plane: Server, clock: Clock, watch: Watch
) -> None:
    with watch.may_break():
        plane.start()
    watch.until_all_have(engage("finance"), 5)

    idle.database.freeze()
    with watch.database_away():
        time.sleep(1)
        clock.set(-AN_HOUR)
        time.sleep(2)
        clock.set(AN_HOUR)
        time.sleep(1)
    idle.database.thaw()

    watch.until_all_have(engage("later"), 5)
    watch.judge(recovers_within=5)


def test_a_restart_without_a_database_under_a_clock_set_back_says_so(
    idle: Following, plane: Server, clock: Clock, watch: Watch, tmp_path: Path
) -> None:
    kept = tmp_path / "data" / "snapshot"
    with watch.may_break():
        plane.start()
        version = engage("finance")
        watch.until_all_have(version, 5)
        wait_until(lambda: kept_version(tmp_path / "data") == version, 5)
        wait_until((kept / BOTH[1]).exists, 5)
        plane.kill()
        idle.database.cut()
        clock.set(-AN_HOUR)
        started = time.monotonic()
        plane.start()

    records = plane.logged("dataplane.copy_postdated")
    assert sorted(line["file"] for line in records) == [str(kept / name) for name in BOTH]
    assert all(near(AN_HOUR)(line["ahead_seconds"]) for line in records)
    first = httpx.get(f"{plane.url}/api/v1/snapshot", headers=TOKEN)
    assert first.json()["version"] == version
    time.sleep(1)
    age = float(httpx.get(f"{plane.url}/api/v1/snapshot", headers=TOKEN).headers["Switchgear-Age"])
    assert 1 <= age < time.monotonic() - started + 5

    idle.database.mend()
    watch.until_all_have(engage("later"), 5)
    watch.judge(recovers_within=5)
