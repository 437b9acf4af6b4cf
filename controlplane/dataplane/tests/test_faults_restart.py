"""A data plane restarted while PostgreSQL and Redis are both down, or never reachable."""

import fcntl
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from controlplane.dataplane.tests.lines import background
from controlplane.dataplane.tests.processes import (
    Server,
    addresses,
    copied,
    data_plane,
    kept_version,
    kill,
    killed,
    web,
)
from controlplane.dataplane.tests.watch import watching
from controlplane.tests.installation import Installation, free_port, running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"
RECOVERY_SECONDS = 30.0
RESTART_SECONDS = 20.0
FOUND_SECONDS = 5.0
KEPT_SECONDS = 31.0
"""Between two notes on disk of how fresh the copy still is; a restart counts from the last."""

_keys = count(1)


@dataclass
class House:
    """An installation, and beside it a data plane with a folder of its own."""

    installation: Installation
    operator: httpx.Client
    alone: Server
    folder: Path

    @property
    def token(self) -> dict[str, str]:
        return {"Authorization": self.operator.headers["Authorization"]}

    def engage(self, key: str) -> int:
        """Engage a segment; return the version once both data planes have it on disk."""
        wait_until(self._ready, 60, self.installation.read_output)
        version = self._engaged(key)
        folders = (self.folder, self.installation.data_dir)
        wait_until(
            lambda: {kept_version(each) for each in folders} == {version},
            10,
            self.alone.read_output,
        )
        return version

    def _engaged(self, key: str) -> int:
        """Retry after 503 while the web process reconnects to its database."""
        path, body = (
            f"/api/v1/switches/segment/{key}/engage",
            {"reason": REASON, "expires_in": "24h"},
        )
        ends = time.monotonic() + FOUND_SECONDS
        while True:
            again = {"Idempotency-Key": f"engage-{key}"}
            response = self.operator.post(path, json=body, headers=again)
            if response.status_code != 503 or time.monotonic() > ends:
                break
            time.sleep(0.1)
        assert response.status_code == 200, response.text
        version: int = response.json()["version"]
        return version

    @contextmanager
    def down(self) -> Iterator[None]:
        with killed(self.installation, "postgres", "redis-server"):
            yield

    def _ready(self) -> bool:
        try:
            return bool(self.operator.get("/health/ready").json()["status"] == "ready")
        except (httpx.TransportError, ValueError):
            return False


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    base = tmp_path_factory.mktemp("house")
    with running(base / "var") as one:
        token = one.token("switches:read", "switches:write")
        with one.client(token) as operator, data_plane(addresses(one), base / "alone") as alone:
            yield House(one, operator, alone, base / "alone")


def fetch(url: str, token: dict[str, str], path: str, body: object = None) -> httpx.Response:
    method = "GET" if body is None else "POST"
    return httpx.request(method, f"{url}{path}", headers=token, json=body, timeout=5)


def answers_as_before(url: str, token: dict[str, str], body: bytes, down_since: float) -> None:
    """Assert that one data plane answers all requests of services from disk."""
    snapshot = fetch(url, token, "/api/v1/snapshot")
    assert (snapshot.status_code, snapshot.content) == (200, body)
    least = time.monotonic() - down_since - 1
    assert least < float(snapshot.headers["Switchgear-Age"]) < least + KEPT_SECONDS + 5
    stopped = fetch(url, token, "/api/v1/check", {"segments": ["finance"]})
    assert (stopped.status_code, stopped.json()["allowed"]) == (200, False)
    assert fetch(url, token, "/api/v1/check", {"segments": ["other"]}).json()["allowed"] is True
    flag = fetch(url, token, "/ofrep/v1/evaluate/flags/segment:finance", {"context": {}})
    assert (flag.status_code, flag.json()["value"]) == (200, False)
    flags = fetch(url, token, "/ofrep/v1/evaluate/flags", {"context": {}}).json()["flags"]
    assert {"segment:finance": False}.items() <= {f["key"]: f["value"] for f in flags}.items()
    degradation = fetch(url, token, "/api/v1/degradation").json()
    assert degradation["level"] == 3
    assert any("PostgreSQL" in cause for cause in degradation["causes"])
    assert fetch(url, {}, "/health/ready/data").json()["source"] == "disk"
    assert fetch(url, {}, "/api/v1/snapshot").status_code == 401


@pytest.mark.smoke
def test_both_down_a_restart_answers_from_disk_as_before(house: House) -> None:
    installation, alone = house.installation, house.alone
    version = house.engage("finance")
    body = fetch(alone.url, house.token, "/api/v1/snapshot").content
    with (
        background() as loop,
        watching(loop, house.token, [alone.url], [installation.url]) as watch,
    ):
        watch.until_all_have(version, 5)
        with house.down():
            down_since = time.monotonic()
            with watch.database_away():
                with watch.may_break():
                    alone.kill()
                    kill(installation, "granian")
                    alone.start(ready_within=RESTART_SECONDS)
                with (
                    watch.may_break(seconds_after=RECOVERY_SECONDS),
                    web(
                        installation.environment, installation.port, Path(f"{house.folder}-web.txt")
                    ),
                ):
                    time.sleep(2)
                    for url in (alone.url, installation.url):
                        answers_as_before(url, house.token, body, down_since)
                    read_only(installation.url)

        later = house.engage("later")
        watch.until_all_have(later, 5)
        assert fetch(alone.url, {}, "/health/ready/data").json()["source"] == "database"
        watch.judge(recovers_within=RECOVERY_SECONDS)


def read_only(url: str) -> None:
    """Assert that the front page lists what works, and other paths send Retry-After."""
    for accept in ("text/html", "*/*"):
        front = httpx.get(url, headers={"Accept": accept})
        assert front.status_code == 200
        assert "killswitch engage" in front.text
    page = httpx.get(f"{url}/switches/", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["Content-Type"][:9]) == (503, "text/html")
    assert int(page.headers["Retry-After"]) > 0
    change = httpx.post(f"{url}/api/v1/switches/segment/a/engage", json={})
    assert change.status_code == 503
    assert change.headers["Content-Type"] == "application/problem+json"


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def forge(path: Path) -> None:
    """Release one segment in a text that is valid except for its signature."""
    text = path.read_bytes()
    path.write_bytes(text.replace(b"before", b"behind"))
    assert path.read_bytes() != text


@pytest.fixture
def kept(house: House, tmp_path: Path) -> Path:
    """A data plane's folder with two versions, one of which stops one segment more."""
    house.engage(f"before-{next(_keys)}")
    house.engage(f"newest-{next(_keys)}")
    return copied(house.folder, tmp_path / "data")


@pytest.fixture
def nowhere(house: House) -> dict[str, str]:
    """The environment of a data plane whose PostgreSQL and Redis are both unreachable."""
    return {
        **addresses(house.installation),
        "DATABASE_URL": f"postgresql://switchgear_app:x@127.0.0.1:{free_port()}/switchgear",
        "DATABASE_OWNER_URL": f"postgresql://switchgear_owner:x@127.0.0.1:{free_port()}/switchgear",
        "REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
    }


@pytest.mark.parametrize("damage", [cut_off, forge, Path.unlink], ids=["cut", "forged", "absent"])
def test_a_damaged_copy_is_refused_and_the_one_before_is_served(
    house: House, nowhere: dict[str, str], kept: Path, damage: Callable[[Path], None]
) -> None:
    current, previous = kept / "snapshot" / "current", kept / "snapshot" / "previous"
    before: dict[str, Any] = json.loads(previous.read_bytes().partition(b"\n")[2])
    damage(current)

    with (
        data_plane(nowhere, kept) as plane,
        background() as loop,
        watching(loop, house.token, [plane.url]) as watch,
    ):
        with watch.database_away(since=_monotonic(before["confirmed_at"])):
            refused = [line["file"] for line in plane.logged("dataplane.copy_refused")]
            assert refused == ([] if damage is Path.unlink else [str(current)])
            served = fetch(plane.url, house.token, "/api/v1/snapshot")
            assert {**served.json(), "emergency": None} == {**before["snapshot"], "emergency": None}
            time.sleep(1)
        watch.judge(recovers_within=RECOVERY_SECONDS)


def _monotonic(moment: str) -> float:
    """Return an RFC 3339 time as monotonic seconds."""
    return time.monotonic() - (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()


def spoil_both(snapshot: Path) -> None:
    cut_off(snapshot / "current")
    forge(snapshot / "previous")


@pytest.mark.parametrize("damage", [spoil_both, shutil.rmtree], ids=["spoilt", "absent"])
def test_without_a_sound_copy_it_makes_nothing_up(
    house: House, nowhere: dict[str, str], kept: Path, damage: Callable[[Path], None]
) -> None:
    damage(kept / "snapshot")

    with (
        data_plane(nowhere, kept, start=False) as plane,
        background() as loop,
        watching(loop, house.token, [plane.url]) as watch,
    ):
        with watch.may_break(), watch.may_refuse():
            plane.start(ready="/health/live")
            time.sleep(1)
            for read in ("/api/v1/snapshot", "/api/v1/snapshot/stream", "/health/ready/data"):
                _is_refused(fetch(plane.url, house.token, read))
            for ask in ("/api/v1/check", "/ofrep/v1/evaluate/flags", "/ofrep/v1/evaluate/flags/a"):
                _is_refused(fetch(plane.url, house.token, ask, {}))
        files = [line["file"].rpartition("/")[2] for line in plane.logged("dataplane.copy_refused")]
        assert files == (["current", "previous"] if damage is spoil_both else [])
        assert not watch.has
        watch.stop()
        assert {response.status for response in watch.answers} == {0, 503}
        assert all(watch.is_allowed(response) for response in watch.answers)


def _is_refused(response: httpx.Response) -> None:
    assert response.status_code == 503, response.text
    assert int(response.headers["Retry-After"]) > 0


def test_started_before_postgresql_it_follows_as_soon_as_there_is_one(
    house: House, tmp_path: Path
) -> None:
    environment = addresses(house.installation)
    with (
        data_plane(environment, tmp_path / "data", start=False) as plane,
        background() as loop,
        watching(loop, house.token, [plane.url]) as watch,
    ):
        with watch.may_break(), watch.may_refuse(seconds_after=RECOVERY_SECONDS):
            with house.down():
                plane.start(ready="/health/live")
                time.sleep(1)
                assert not watch.has
                ended = time.monotonic()
            wait_until(lambda: plane.answers("/health/ready/data"), 5)
            print(f"it follows {time.monotonic() - ended:.1f} s after the services began to start")
        watch.until_all_have(house.engage("after"), 5)
        watch.judge(recovers_within=RECOVERY_SECONDS)


def test_killed_right_after_an_answer_it_restarts_with_the_version_it_named(
    house: House, nowhere: dict[str, str], tmp_path: Path
) -> None:
    with data_plane(addresses(house.installation), tmp_path / "data") as plane:
        house.engage("kept")
        snapshot = fetch(plane.url, house.token, "/api/v1/snapshot")
        with open(tmp_path / "data" / "snapshot" / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # As if the disk took long over its fsync.
            key = f"served-{next(_keys)}"
            engaging = threading.Thread(target=house._engaged, args=(key,))
            engaging.start()
            held = {**house.token, "If-None-Match": snapshot.headers["ETag"]}
            response = fetch(plane.url, held, "/api/v1/snapshot?wait=5")
            plane.kill()
            engaging.join()
        assert response.status_code == 200
        plane.environment.update(nowhere)

        plane.start()

        again = fetch(plane.url, house.token, "/api/v1/snapshot")
        assert fetch(plane.url, {}, "/health/ready/data").json()["source"] == "disk"
        assert again.content == response.content
        assert kept_version(tmp_path / "data") < response.json()["version"]
