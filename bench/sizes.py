"""Measures the size of a snapshot and the CPU of a scrape with 10,000 switches and dependencies."""

import gzip
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from statistics import median

from . import fixtures, http_client, many_switches
from .servers import HOST, ServerUnderTest

KNOWN, ENGAGED, DEPENDENCIES = 10_000, 2_000, 10_000
CACHED_SECONDS = 5.5
SCRAPES = 5


@dataclass(frozen=True)
class SnapshotSizes:
    """Bytes of a snapshot and of a metrics scrape, plain and gzipped.

    `scrape_cpu_ms` is the web process's CPU time for a scrape that is not cached.
    """

    snapshot_bytes: int
    snapshot_gzip_bytes: int
    scrape_bytes: int
    scrape_gzip_bytes: int
    scrape_cpu_ms: float


def measure(web: ServerUnderTest, token: str) -> SnapshotSizes:
    fixtures.create_dependencies(DEPENDENCIES)
    try:
        many_switches.wait_for_version(web, token, fixtures.create_switches(KNOWN, ENGAGED))
        plain = _get(web, http_client.SNAPSHOT, token)
        packed = _get(web, http_client.SNAPSHOT, token, {"Accept-Encoding": "gzip"})
        if gzip.decompress(packed) != plain:
            raise SystemExit("bench: the compressed snapshot differs from the plain one")
        cpu_ms, scraped = [], b""
        for _ in range(SCRAPES):
            time.sleep(CACHED_SECONDS)
            web.settle()
            before = web.threads_cpu_seconds()
            scraped = _get(web, "/metrics", token, {"Accept-Encoding": "gzip"})
            time.sleep(0.2)
            cpu_ms.append((web.threads_cpu_seconds() - before) * 1e3)
        whole = gzip.decompress(scraped)
        return SnapshotSizes(len(plain), len(packed), len(whole), len(scraped), median(cpu_ms))
    finally:
        fixtures.delete_dependencies()


def _get(
    web: ServerUnderTest, path: str, token: str, headers: Mapping[str, str] | None = None
) -> bytes:
    caller = HTTPConnection(HOST, web.port, timeout=20)
    caller.request("GET", path, headers={"Authorization": f"Bearer {token}", **(headers or {})})
    answer = caller.getresponse()
    body = answer.read()
    caller.close()
    if answer.status != 200:
        raise SystemExit(f"bench: GET {path} was answered with {answer.status}")
    return body
