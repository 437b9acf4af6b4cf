"""Signing keys of real processes: generated once, rotated by a command, without a restart."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from controlplane.core.signatures import read_public_keys, verify
from controlplane.core.signing_keys import NAME
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.processes import ROOT, Server, data_plane, web
from controlplane.dataplane.tests.test_alone import variables
from controlplane.dataplane.tests.test_following import engage, make_token
from controlplane.tests.installation import free_port, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
TOKEN = {"X-API-Key": "sg_reader0001_secret"}
NOTICED_SECONDS = 5.0


def list_keys(server: Server) -> list[dict[str, str]]:
    keys: list[dict[str, str]] = httpx.get(f"{server.url}/api/v1/keys", timeout=5).json()["keys"]
    return keys


def has_two_keys(server: Server) -> bool:
    """Return True if all processes that share the server's port list two keys."""
    return all(len(list_keys(server)) == 2 for _ in range(12))


def accepts(server: Server, public_key: str) -> bool:
    """Return True if the snapshot is signed with this key; raise InvalidSignature if not."""
    response = httpx.get(f"{server.url}/api/v1/snapshot", headers=TOKEN, timeout=5)
    assert response.json()["switches"]
    header = response.headers["switchgear-signature"]
    return bool(verify(header, response.content, read_public_keys(public_key)))


def test_processes_of_a_machine_share_a_key_and_notice_a_new_one(
    idle: Following, tmp_path: Path
) -> None:
    make_token()
    engage("finance")
    folder = tmp_path / "data"
    environment = {**variables(idle, tmp_path), "SWITCHGEAR_DATA_DIR": str(folder)}
    with (
        data_plane(environment, folder, workers=2) as plane,
        web(environment, free_port(), tmp_path / "web-said.txt") as console,
    ):
        (old,) = list_keys(plane)
        assert list_keys(console) == [old]
        for server in (plane, console):
            assert accepts(server, old["public_key"])

        subprocess.run(
            [sys.executable, "manage.py", "keys", "rotate"],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
            timeout=30,
        )

        for server in (plane, console):
            wait_until(lambda server=server: has_two_keys(server), NOTICED_SECONDS)
            new, replaced = list_keys(server)
            assert (replaced["id"], replaced["current"]) == (old["id"], False)
            assert accepts(server, old["public_key"])
            assert accepts(server, new["public_key"])
        plane.kill()
        plane.start()
        assert accepts(plane, new["public_key"])
    assert new["public_key"] not in (folder / "secrets" / NAME).read_text()
