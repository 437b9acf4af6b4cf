"""A real Alertmanager as the caller: a firing alert trips once; "resolved" doesn't release."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager

import httpx
import pytest

from controlplane.tests.installation import free_port, running, wait_until

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(300),
    pytest.mark.skipif(PROGRAM is None, reason="no Alertmanager here: apt-get install it"),
]
CONFIGURATION = """
route:
  receiver: switchgear
  group_by: [alertname]
  group_wait: 1s
  group_interval: 2s
  repeat_interval: 4s
receivers:
  - name: switchgear
    webhook_configs:
      - url: {url}/api/v1/hooks/alertmanager
        send_resolved: true
        http_config:
          authorization:
            type: Bearer
            credentials: {token}
"""


class Alertmanager:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def is_ready(self):
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def post(self, **labels):
        ends = {"endsAt": labels.pop("endsAt")} if "endsAt" in labels else {}
        alert = {
            "labels": {"severity": "page", **labels},
            "annotations": {"summary": "OpenAI answers 5xx since 02:10", "note": "공급자 장애"},
            "generatorURL": "http://prometheus.example:9090/graph",
            **ends,
        }
        httpx.post(f"{self.url}/api/v2/alerts", json=[alert], timeout=5).raise_for_status()

    def failures(self):
        text = httpx.get(f"{self.url}/metrics", timeout=5).text
        name = "alertmanager_notifications_failed_total"
        lines = [one for one in text.splitlines() if one.startswith(name) and "webhook" in one]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


@contextmanager
def alertmanager(folder, installation):
    folder.mkdir()
    token = installation.token("switches:trip")
    configuration = folder / "alertmanager.yml"
    configuration.write_text(CONFIGURATION.format(url=installation.url, token=token))
    port = free_port()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [
                PROGRAM,
                f"--config.file={configuration}",
                f"--storage.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        )
    found = Alertmanager(port)
    try:
        wait_until(found.is_ready, 20, (folder / "output.txt").read_text)
        yield found
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def installation(tmp_path):
    with running(tmp_path / "var") as one:
        yield one


@pytest.fixture
def manager(tmp_path, installation):
    with alertmanager(tmp_path / "alertmanager", installation) as one:
        yield one


@pytest.fixture
def client(installation):
    with installation.client(installation.token("switches:read", "switches:write")) as one:
        yield one


def trips(client, **filters):
    return client.get("/api/v1/trips/", params=filters).json()["results"]


def state(client, switch):
    return client.get(f"/api/v1/switches/{switch.replace(':', '/')}/").json()["state"]


def test_real_alertmanager_stops_a_switch_once_and_releases_nothing(manager, client):
    flag = "feature:answers"
    alert = {
        "alertname": "ProviderDown",
        "switchgear_switch": flag,
        "switchgear_expires_in": "2h",
    }
    manager.post(**alert)
    engaged = wait_until(lambda: state(client, flag) == "engaged", 30, lambda: trips(client))
    print(f"alert to engaged: {engaged:.1f} s, of which Alertmanager waits one to group")
    switch = client.get("/api/v1/switches/feature/answers/").json()
    assert switch["reason"] == "ProviderDown: OpenAI answers 5xx since 02:10"

    wait_until(
        lambda: trips(client, outcome="tripped")[0]["repeats"] >= 1, 30, lambda: trips(client)
    )
    assert len(trips(client, outcome="tripped")) == 1
    evidence = trips(client, outcome="tripped")[0]["evidence"]
    assert evidence["labels"]["alertname"] == "ProviderDown"
    assert evidence["annotations"]["note"] == "공급자 장애"
    assert evidence["externalURL"]

    manager.post(**alert, endsAt=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1)))
    resolved = lambda: trips(client, outcome="tripped")[0]["resolved_at"] is not None  # noqa: E731
    wait_until(resolved, 30, lambda: trips(client))
    assert state(client, flag) == "engaged"
    assert manager.failures() == 0


def test_what_a_person_released_stays_released_while_it_keeps_firing(manager, client):
    flag = "experiment:ranking"
    alert = {"alertname": "Guardrail", "switchgear_switch": f"{flag},global:all"}
    manager.post(**alert)
    wait_until(lambda: state(client, flag) == "engaged", 30, lambda: trips(client))

    calm = {"justification": "known: load test until 15:00", "mode": "immediate"}
    released = client.post("/api/v1/switches/experiment/ranking/release", json=calm)
    assert released.status_code == 200, released.text
    refused = lambda: trips(client, switch=flag, outcome="refused")  # noqa: E731
    wait_until(lambda: refused() and refused()[0]["repeats"] >= 1, 40, lambda: trips(client))

    assert state(client, flag) == "released"
    assert state(client, "global:all") == "released"
    assert {row["outcome"] for row in trips(client, switch="global:all")} == {"refused"}
    assert manager.failures() == 0
