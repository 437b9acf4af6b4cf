"""Replicas that are behind, and a restored database: no caller ever goes back in time."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.db import connection

from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.processes import ROOT, Server, data_plane
from controlplane.dataplane.tests.test_alone import variables
from controlplane.dataplane.tests.test_following import engage, make_token
from controlplane.dataplane.tests.watch import watching
from controlplane.tests.installation import wait_until
from switches.models import Episode, Publication

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
TOKEN = {"X-API-Key": "sg_reader0001_secret"}


@pytest.fixture
def environment(idle: Following, tmp_path: Path) -> dict[str, str]:
    """Environment of a process that follows the database directly, and Redis through a proxy."""
    make_token()
    return {**variables(idle, tmp_path), "DATABASE_URL": _direct(idle)}


def _direct(idle: Following) -> str:
    url = urlsplit(idle.config.database_url)
    port = connection.settings_dict["PORT"] or 5432
    return idle.config.database_url.replace(f":{url.port}/", f":{port}/")


@pytest.fixture
def leading(environment: dict[str, str], tmp_path: Path) -> Iterator[Server]:
    with data_plane(environment, tmp_path / "leading") as one:
        yield one


@pytest.fixture
def lagging(idle: Following, tmp_path: Path, leading: Server) -> Iterator[Server]:
    """A process that follows the same database through a proxy that can be frozen."""
    with data_plane(variables(idle, tmp_path), tmp_path / "lagging") as one:
        yield one


def served(server: Server) -> tuple[int, float]:
    """Return version and age as sent to a caller without a copy."""
    response = httpx.get(f"{server.url}/api/v1/snapshot", headers=TOKEN)
    assert response.status_code == 200
    return response.json()["version"], float(response.headers["Switchgear-Age"])


@pytest.mark.smoke
def test_between_a_replica_ahead_and_one_behind_nobody_is_sent_back(
    idle: Following, leading: Server, lagging: Server
) -> None:
    first = engage("first")
    with watching(idle.loop, TOKEN, [leading.url, lagging.url]) as watch:
        watch.until_all_have(first, 5)
        wait_until(lambda: served(lagging)[0] == first, 5)
        idle.database.freeze()
        idle.redis.freeze()
        with watch.database_away(lagging.url):
            for number in range(5):
                version = engage(f"s{number}")
                time.sleep(0.7)
            watch.until_all_have(version, 5)
            behind, age = served(lagging)
            assert behind == first
            assert age > 3
            assert served(leading)[0] == version
        idle.database.thaw()
        idle.redis.thaw()
        wait_until(lambda: served(lagging)[0] == version, 5)
        watch.until_all_have(engage("last"), 3)
        watch.judge(recovers_within=5)


def test_a_restored_backup_is_refused_until_a_new_epoch_begins(
    idle: Following, leading: Server, environment: dict[str, str]
) -> None:
    old = Publication.objects.get()
    for number in range(5):
        version = engage(f"s{number}")
    with watching(idle.loop, TOKEN, [leading.url]) as watch:
        watch.until_all_have(version, 5)
        go_back_to(version - 3)
        before = dict(watch.has)
        with watch.database_away():
            time.sleep(1)
            assert engage("since") == version - 2
            time.sleep(2)
            assert watch.has == before
            assert served(leading)[1] > 2.5
            [found] = leading.logged("dataplane.older_version_ignored")
            assert (found["epoch"], found["version"]) == (str(old.epoch), version - 3)

        begin_epoch(environment)
        began = Publication.objects.get()
        assert began.epoch != old.epoch
        versions = {(str(began.epoch), began.version)}
        took = wait_until(lambda: set(watch.has.values()) == versions, 5, lambda: watch.has)
        print(f"all have the new epoch {took:.2f} s after it began")

        Publication.objects.update(epoch=old.epoch, version=version + 10)
        time.sleep(1.5)
        assert set(watch.has.values()) == versions
        Publication.objects.update(epoch=began.epoch, version=began.version)
        watch.until_all_have(engage("later"), 3)
        watch.judge(recovers_within=5)


def go_back_to(version: int) -> None:
    """Replace the database's state, as restoring a backup from then would."""
    Episode.objects.filter(switch__version__gt=version).delete()
    Publication.objects.update(version=version)


def begin_epoch(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "epoch", "begin", "--reason", "restored, INC-7"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
