"""A data plane that restarts from its disk while nothing behind it answers."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.served import ask
from controlplane.dataplane.tests.test_following import engage, make_token

TOKEN = {"X-API-Key": "sg_reader0001_secret"}


@pytest.fixture
def keeping(idle: Following, tmp_path: Path) -> Following:
    """A running plane that keeps its copy in a folder."""
    idle.config = replace(idle.config, folder=tmp_path / "snapshot", signing_key=b"key")
    make_token()
    idle.start()
    return idle


def kept_version(following: Following) -> int:
    folder = following.config.folder
    assert folder is not None
    try:
        text = (folder / "current").read_bytes()
    except FileNotFoundError:  # Not written yet, or between two renames.
        return -1
    return int(text.partition(b'"version":')[2].partition(b"}")[0].partition(b",")[0])


def source(following: Following) -> str:
    return str(ask(following.plane, "GET", "/health/ready/data").json()["source"])


def restart(following: Following) -> None:
    following.stop()
    following.plane = Plane()
    following.start()


def test_with_everything_away_it_answers_as_before(keeping: Following) -> None:
    version = engage("finance")
    wait_until(lambda: kept_version(keeping) == version, 5)
    keeping.database.cut()
    keeping.redis.cut()

    restart(keeping)

    response = ask(keeping.plane, "GET", "/api/v1/snapshot", TOKEN)
    assert response.status_code == 200
    assert [switch["key"] for switch in response.json()["switches"]] == ["finance"]
    check = ask(keeping.plane, "POST", "/api/v1/check", TOKEN, content=b'{"segments":["finance"]}')
    assert check.json()["allowed"] is False
    flags = ask(keeping.plane, "POST", "/ofrep/v1/evaluate/flags", TOKEN)
    assert [flag["key"] for flag in flags.json()["flags"]] == ["segment:finance"]
    assert source(keeping) == "disk"
    assert ask(keeping.plane, "GET", "/api/v1/degradation", TOKEN).json()["level"] == 3


def test_age_counts_over_the_restart(keeping: Following) -> None:
    version = engage("finance")
    wait_until(lambda: kept_version(keeping) == version, 5)
    keeping.database.cut()
    before = keeping.state.age_seconds()

    restart(keeping)

    assert before <= keeping.state.age_seconds() < before + 10


def test_once_the_database_is_back_it_is_followed_again(keeping: Following) -> None:
    wait_until(lambda: kept_version(keeping) >= 0, 5)
    keeping.database.cut()
    restart(keeping)
    keeping.database.mend()

    version = engage("finance")

    wait_until(lambda: keeping.state.status().version == version, 5)
    wait_until(lambda: source(keeping) == "database", 2)
    assert keeping.state.age_seconds() < 2


def at_rest(folder: Path) -> bool:
    """Return True if no process is writing to the folder."""
    try:
        before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
        time.sleep(0.2)
        return before == {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    except FileNotFoundError:  # A draft was renamed to the copy.
        return False


def test_a_forged_copy_is_refused_and_the_one_before_is_served(keeping: Following) -> None:
    first = engage("finance")
    wait_until(lambda: kept_version(keeping) == first, 5)
    second = engage("retail")
    wait_until(lambda: kept_version(keeping) == second, 5)
    folder = keeping.config.folder
    assert folder is not None
    current = folder / "current"
    keeping.database.cut()
    keeping.stop()
    wait_until(lambda: at_rest(folder), 5)  # A write in progress is completed.
    before = (folder / "previous").read_bytes()
    current.write_bytes(current.read_bytes().replace(b"retail", b"wholly"))
    for latest in folder.glob("latest-*"):
        latest.unlink()

    with capture_logs() as logs:
        keeping.plane = Plane()
        keeping.start()

    assert [line["file"] for line in logs if line["event"] == "dataplane.copy_refused"] == [
        str(current)
    ]
    response = ask(keeping.plane, "GET", "/api/v1/snapshot", TOKEN)
    published = response.content.replace(b'"emergency":{"closed":[],"open":[]},', b"")
    assert published in before
    assert b"wholly" not in response.content


def test_a_folder_that_can_not_be_written_costs_nothing_else(idle: Following) -> None:
    idle.config = replace(idle.config, folder=Path("/dev/null/nowhere"), signing_key=b"key")
    idle.start()

    version = engage("finance")

    wait_until(lambda: idle.state.status().version == version, 5)


def test_nothing_is_kept_before_the_database_has_answered(idle: Following, tmp_path: Path) -> None:
    idle.config = replace(idle.config, folder=tmp_path / "snapshot", signing_key=b"key")
    idle.database.cut()

    idle.start()

    assert not (tmp_path / "snapshot").exists()


@contextmanager
def writes_held_up(following: Following) -> Iterator[None]:
    """Hold the folder's lock within the context, so that no process can write its copy."""
    folder = following.config.folder
    assert folder is not None
    with open(folder / "lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_killed_before_its_copy_is_written_it_restarts_with_the_version_it_served(
    keeping: Following,
) -> None:
    before = engage("finance")
    wait_until(lambda: kept_version(keeping) == before, 5)
    with writes_held_up(keeping):
        served = engage("chat")
        wait_until(lambda: keeping.state.status().version == served, 5)
        keeping.database.cut()

        restart(keeping)

    assert kept_version(keeping) == before
    response = ask(keeping.plane, "GET", "/api/v1/snapshot", TOKEN)
    assert response.headers["Switchgear-Version"] == str(served)
    assert {switch["key"] for switch in response.json()["switches"]} == {"chat", "finance"}
