"""A start with the application's login alone fails at once: the owner's is missing."""

import contextlib
import os
import subprocess
import sys

import httpx
import pytest
from django.conf import settings

from controlplane.core.tests.processes import ROOT, on_test_database
from controlplane.tests.installation import free_port, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
STARTS = [("dataplane",), ("serve", "dataplane"), ("serve", "worker"), ("serve", "web")]


@pytest.fixture
def alone(tmp_path):
    """Variables with the application's login only, without the tables' owner."""
    addresses = settings.ENV.database
    if addresses.assume_role:
        pytest.skip("the tests themselves have one login for everything")
    kept = {key: value for key, value in os.environ.items() if key != "DATABASE_OWNER_URL"}
    return {
        **kept,
        "DATABASE_URL": on_test_database(addresses.url),
        "SWITCHGEAR_DATA_DIR": str(tmp_path / "data"),
    }


@contextlib.contextmanager
def begin(variables, *arguments):
    option = "--health-port" if arguments[-1] == "worker" else "--port"
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "manage.py", *arguments, option, str(port)],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, f"http://127.0.0.1:{port}/health/live"
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", STARTS, ids=" ".join)
def test_it_ends_with_one_line_that_names_what_is_missing(alone, arguments):
    with begin(alone, *arguments) as (process, _):
        output, complained = process.communicate(timeout=60)

    assert process.returncode == 2, complained
    assert output == ""
    (line,) = complained.splitlines()
    assert "DATABASE_OWNER_URL: is not set" in line
    assert "provision" in line


def test_with_a_copy_on_disk_a_data_plane_has_something_to_do_all_the_same(alone, tmp_path):
    (tmp_path / "data" / "snapshot").mkdir(parents=True, mode=0o700)
    (tmp_path / "data" / "snapshot" / "current").write_text("of an earlier run")

    with begin(alone, "serve", "dataplane") as (process, live):
        wait_until(lambda: answers(live), 60, process.poll)


def answers(url):
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False
