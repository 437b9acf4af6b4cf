"""A real data plane publishes its signed snapshot, and a real client falls back to the file."""

import time

import httpx
import pytest

from controlplane.core.signatures import SigningKey
from controlplane.dataplane.published_file.content import parse_head
from controlplane.dataplane.tests.object_store import object_store
from controlplane.dataplane.tests.processes import addresses, data_plane
from controlplane.tests.installation import running, wait_until
from switchgear import Switchgear

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
FALLBACK_SECONDS = 10.0 + 1.0 + 5.0 * 1.2 + 2.0
"""Failures before the file is read, a check, an interval with jitter, and a margin."""


def engage(operator: httpx.Client, key: str) -> None:
    body = {"reason": "provider outage, 5xx on completions since 02:10", "expires_in": "24h"}
    response = operator.post(f"/api/v1/switches/segment/{key}/engage", json=body)
    assert response.status_code == 200, response.text


def test_client_of_a_lost_data_plane_follows_the_file_of_another(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    key = SigningKey.generate()
    with running(base / "var") as one, object_store() as store:
        token = one.token("switches:read", "switches:write", "report:write")
        variables = {**addresses(one), "SNAPSHOT_SIGNING_KEY": key.secret_text}
        publishes = {**variables, "SNAPSHOT_PUBLISH_TO": store.url}
        with (
            one.client(token) as operator,
            data_plane(variables, base / "lost") as lost,
            data_plane(publishes, base / "publishing", workers=2) as publishing,
        ):
            engage(operator, "before")
            [public] = httpx.get(f"{lost.url}/api/v1/keys").json()["keys"]
            assert public["public_key"] == str(key.public)
            with Switchgear(
                lost.url,
                token,
                service="core",
                state_dir=None,
                public_key=public["public_key"],
                fallback_url=store.url,
            ) as gear:
                assert gear.wait_ready(20), gear.status()
                wait_until(lambda: not gear.allowed(segment="before"), 5, gear.status)
                assert gear.status().verified

                lost.kill()
                engage(operator, "after")
                version = operator.get("/api/v1/snapshot").json()["version"]
                wait_until(lambda: version_in(store.content) == version, 5, publishing.read_output)
                took = wait_until(
                    lambda: not gear.allowed(segment="after"), FALLBACK_SECONDS, gear.status
                )
                status = gear.status()
                assert (status.source, status.way) == ("fallback", "down")
                assert status.age_seconds is not None
                assert status.age_seconds < 40
                assert took > 5  # The file was not asked at once.

                lost.start()
                wait_until(lambda: gear.status().source == "console", 40, gear.status)
                assert not gear.allowed(segment="after")


def version_in(content: bytes | None) -> int | None:
    return None if content is None else parse_head(content).publication.version


def test_file_is_renewed_without_changes_by_one_of_several_processes(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    file = shared / "snapshot.json"
    with running(tmp_path / "base") as one:
        publishes = {**addresses(one), "SNAPSHOT_PUBLISH_TO": str(shared)}
        with data_plane(publishes, tmp_path / "plane", workers=2) as plane:
            wait_until(file.exists, 10, plane.read_output)
            inodes = set()
            ends = time.monotonic() + 62
            while time.monotonic() < ends:
                inodes.add((file.stat().st_ino, file.stat().st_mtime_ns))
                assert time.time() - file.stat().st_mtime < 31
                time.sleep(0.2)
            assert 2 <= len(inodes) <= 5
