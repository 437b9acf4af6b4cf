"""A real Prometheus: what it scraped, and its history, end up in our minutes."""

import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from controlplane.core.clock import db_now
from slo.arithmetic.minutes import end_of, last_ended
from slo.counters import reader
from slo.ingest.prometheus import poller
from slo.models import Sli
from slo.tests.factories import slo

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.faults,
    pytest.mark.smoke,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus here"),
]
GOOD = 'sum(app_requests_total{code!~"5.."})'
TOTAL = "sum(app_requests_total)"
MINUTE = timedelta(minutes=1)


class Exporter:
    """Counters of two instances, as Prometheus scrapes them."""

    def __init__(self):
        self.ok, self.failed, self.scrapes = 1000, 5, 0

    def text(self):
        self.scrapes += 1
        return (
            "# TYPE app_requests_total counter\n"
            f'app_requests_total{{code="200"}} {self.ok}\n'
            f'app_requests_total{{code="503"}} {self.failed}\n'
        ).encode()


@contextmanager
def exporting(exporter):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = exporter.text()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def prometheus(folder, scraped=None):
    """Return its address once it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    job = f"  - job_name: app\n    static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]\n"
    jobs = f"scrape_configs:\n{job}" if scraped else ""
    config = folder / "prometheus.yml"
    config.write_text(f"global: {{scrape_interval: 1s}}\n{jobs}")
    process = subprocess.Popen(
        [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}", "--storage.tsdb.retention.time=30d",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: _is_ready(address))
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait(10)


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


def _is_ready(address):
    try:
        return httpx.get(f"http://{address}/-/ready", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def wait_for_scrape(exporter):
    """Wait for two whole scrapes after now: the first may have been under way."""
    scrapes = exporter.scrapes
    wait_until(lambda: exporter.scrapes >= scrapes + 3)


def counts(sli, minute):
    return reader.load_counts({sli.pk: {minute}})[sli.pk, minute]


def test_what_was_scraped_is_counted(tmp_path):
    exporter = Exporter()
    with exporting(exporter) as port, prometheus(tmp_path, port) as url:
        source = {"type": "prometheus", "url": url, "good": GOOD, "total": TOTAL}
        sli = Sli.objects.get(slo=slo("app", source=source))
        wait_for_scrape(exporter)
        now = db_now().replace(second=10) + MINUTE
        assert poller.poll_due(now) == 1

        exporter.ok, exporter.failed = exporter.ok + 90, exporter.failed + 10
        wait_for_scrape(exporter)
        # A server answers for a moment to come with what it scraped last.
        assert poller.poll_due(now + 2 * MINUTE) == 2

        sli.refresh_from_db()
        assert sli.source_error == ""
        values = counts(sli, last_ended(now) + 2)
        assert (values.good, values.total, values.covered) == (90, 100, 2)

        Sli.objects.update(polled_to=last_ended(now) + 2)
        slo("app", source={**source, "total": "sum by (code) (app_requests_total)"})
        poller.poll_due(now + 3 * MINUTE)
        sli.refresh_from_db()
        assert sli.source_error.startswith("total: it returned 2 series")

        slo("app", source={**source, "good": "sum(("})
        poller.poll_due(now + 4 * MINUTE)
        sli.refresh_from_db()
        assert sli.source_error.startswith("good: status 400: ")
        assert "parse error" in sli.source_error


def test_history_is_caught_up_with_and_a_gap_in_it_is_not_covered(tmp_path):
    now = db_now().replace(second=10)
    last = last_ended(now)
    gap = range(last - 30, last - 18)
    written = [minute for minute in range(last - 61, last + 1) if minute not in gap]
    history = tmp_path / "history.om"
    history.write_text(
        "# TYPE app_requests counter\n"
        + "".join(
            f'app_requests_total{{code="{code}"}} {count * minute} {end_of(minute).timestamp()}\n'
            for code, count in (("200", 9), ("503", 1))
            for minute in written
        )
        + "# EOF\n"
    )
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", history, tmp_path / "data"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    with prometheus(tmp_path) as url:
        source = {"type": "prometheus", "url": url, "good": GOOD, "total": TOTAL}
        sli = Sli.objects.get(slo=slo("app", source=source))
        Sli.objects.update(polled_to=last - 61)
        for turn in range(3):
            poller.poll_due(now + turn * timedelta(seconds=5))

    sli.refresh_from_db()
    assert (sli.source_error, sli.polled_to) == ("", last)
    values = counts(sli, last)
    assert (values.good, values.total) == (9 * 60, 10 * 60)
    # For five minutes a server goes on to tell what it knew last.
    assert values.covered == 60 - (len(gap) - 5) - 1
