"""Every query of the dashboard, on a real Prometheus that scrapes real expositions."""

import re
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from breakers.dead_letters.models import LetterStream
from breakers.tests.fleet import dependency
from controlplane.core import health, heartbeats, metrics
from controlplane.core.clock import db_now
from controlplane.core.liveness import Loop
from controlplane.core.models import Job
from controlplane.core.registry import RegisteredFunction
from controlplane.dataplane import metrics as dataplane_metrics
from controlplane.dataplane.tests.served import plane
from controlplane.gate import RequestGate
from controlplane.tests.installation import wait_until
from controlplane.tests.test_deploy_monitoring import list_panels
from slo.models import SloStatus
from slo.tests.factories import slo
from switches.models import Episode
from switches.ramps.tests import ramp_helpers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.faults,
    pytest.mark.smoke,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus on PATH"),
]

WEB, PLANE, BESIDE = "web:8000", "dataplane:8000", "worker:9000"
LEGEND = re.compile(r"\{\{(\w+)\}\}")
ANY = object()
"""A value that depends on the machine."""


def expected(pair):
    """{title: [{labels: value}] of each query}: what the panel's title promises of what is there.

    Labels are compared as a set of pairs; a query may give more series than those named.
    """
    return {
        "Engaged switches": [{(): 1}],
        "Degradation": [{(): ANY}],
        "PostgreSQL": [{(): 1}],
        "Redis": [{(): 1}],
        "Failed messages": [{(): 0}],
        "Open alerts": [{(): 0}],
        "Engaged switches by id": [{pair("segment", "finance"): 1, pair("feature", "search"): 0}],
        "Traffic allowed by ramps": [{pair("feature", "search"): 25}],
        "Age of the served snapshot": [
            {(("instance", WEB),): 0.4, (("instance", PLANE),): ANY},
        ],
        "Responses to services, by status": [{(("code", "304"),): ANY}],
        "Open polls and streams": [{(("instance", PLANE),): 0}, {(): ANY}],
        "Reachable stores": [{(("instance", PLANE),): 0}, {(("instance", PLANE),): 1},
                              {(("instance", PLANE),): 0}],
        "Seconds since the last heartbeat": [{(("process", "worker"),): ANY}],
        "Late periodic tasks": [{}],
        "Messages waiting for workers": [{(("queue", "ramps"),): ANY}],
        "Unfinished jobs": [{(("kind", "ramp"), ("state", "running")): 1}, {(): 0}],
        "Hanging main loops": [{}],
        "Memory": [{}],
        "CPU": [{}],
        "Pending messages": [{(): ANY}, {(): 0}],
        "Oldest pending message": [{(): ANY}],
        "Breaker openings per minute": [{(("callee", "oracle"), ("caller", "core")): ANY}],
        "Dead letters": [{(("stream", "axiom:dlq:orders"),): 7}],
        "Error budget left": [{(("slo", "core-availability"),): 0.25}],
        "Change to served, p99": [{(): ANY}],
        "Console requests, p99": [{(("kind", "page"),): ANY}],
        "Responses to services, p99": [{(("kind", "snapshot"),): ANY}],
    }  # fmt: skip


async def nothing(*_):
    """A placeholder for a gate's application."""


class Status:
    """Return the metrics page of a web process."""

    version, age_seconds = 17, 0.4


@contextmanager
def exporting(pages):
    """Serve `pages`, functions by path, on a port that is given."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body, kind = pages[self.path]()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def prometheus(folder, port, pages):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    targets = "".join(
        f"      - {{targets: ['127.0.0.1:{port}'], labels: {{__metrics_path__: '{path}',"
        f" instance: '{instance}'}}}}\n"
        for instance, path in pages.items()
    )
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 3s, scrape_timeout: 3s}\nscrape_configs:\n"
        f"  - job_name: switchgear\n    static_configs:\n{targets}"
    )
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://{address}", trust_env=False) as client:
            wait_until(lambda: _is_ready(client), 20)
            yield client
    finally:
        process.kill()
        process.wait(10)


def _is_ready(client):
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.HTTPError:
        return False


def run_query(client, query):
    """{labels: value} of an instant query, without what stands for the metric's name."""
    answer = client.get("/api/v1/query", params={"query": query}).json()
    assert answer["status"] == "success", answer
    return {
        tuple(sorted((k, v) for k, v in one["metric"].items() if k != "__name__")): float(
            one["value"][1]
        )
        for one in answer["data"]["result"]
    }


def lay():
    """Create data for every panel."""
    now = db_now()
    ramp_helpers.engage("segment:finance", now)
    ramp = ramp_helpers.start_ramp(now, switch="feature:search")
    Job.objects.filter(pk=ramp.job_id).update(started_at=now, state="running")
    Episode.objects.filter(switch_id="feature:search").update(allow_percent=25)
    heartbeats.record_heartbeat("worker")
    dependency("core->oracle", trips_total=3)
    LetterStream.objects.create(
        server="default", name="axiom:dlq:orders", origin="axiom:orders", depth=7, found_at=now
    )
    minute = int(now.timestamp() // 60)
    SloStatus.objects.create(
        slo=slo(), minute=minute, state="ok", since=now, remaining_ratio=0.25, burn_rates={"5m": 1}
    )


@pytest.fixture
def scraped(tmp_path, monkeypatch):
    """A Prometheus that has scraped a web process, a data plane and a worker twice and more."""
    lay()
    monkeypatch.setattr(health, "snapshot_source", Status)
    state, scrapes = plane("segment:finance").state, []
    gate = RequestGate(nothing, state, nothing)

    def web():
        scrapes.append(1)
        gate.observe("/", 200, 0.02)
        return metrics.exposition("")

    def alone():
        state.answered[304] += 5
        state.answer_seconds["snapshot"].observe(0.0001)
        state.served_seconds.observe(0.02)
        _, headers, body = dataplane_metrics.render_metrics(state, "")
        return body, dict(headers)[b"content-type"].decode()

    pages = {
        "/web": web,
        "/plane": alone,
        "/beside": lambda: metrics.process_exposition("", Loop(may_rest_seconds=30)),
    }
    places = dict(zip((WEB, PLANE, BESIDE), pages, strict=True))
    with (
        metrics.PROCESS_METRICS.registered(RegisteredFunction(gate.metrics)),
        exporting(pages) as port,
        prometheus(tmp_path, port, places) as client,
    ):
        wait_until(lambda: b"switchgear_database_up 1" in metrics.exposition("")[0], 30)
        wait_until(lambda: len(scrapes) >= 4, 40)
        yield client


def test_each_panel_shows_what_its_title_says(scraped):
    wanted = expected(lambda scope, key: (("key", key), ("scope", scope)))
    wrong = []

    for panel in list_panels():
        for target, series in zip(panel["targets"], wanted.pop(panel["title"]), strict=True):
            found = run_query(scraped, target["expr"])
            if not found:
                wrong.append((panel["title"], target["expr"], "is empty"))
            for labels, value in series.items():
                if labels not in found or (value is not ANY and found[labels] != value):
                    wrong.append((panel["title"], target["expr"], labels, value, found))
            for name in LEGEND.findall(target["legendFormat"]):
                if any(name not in dict(labels) for labels in found):
                    wrong.append(
                        (panel["title"], f"{{{{{name}}}}} is in the legend, not in {found}")
                    )

    assert not wrong, "\n".join(map(str, wrong))
    assert not wanted, "no such panels"
