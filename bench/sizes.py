"""Measures size and CPU time of snapshot and metrics with 10,000 switches and dependencies."""

import gzip
import time
from dataclasses import dataclass
from statistics import median

from . import fixtures, http_client, many_switches
from .servers import ServerUnderTest

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
        bearer = http_client.bearer(token)
        zipped = {**bearer, "Accept-Encoding": "gzip"}
        plain = http_client.fetch(web.port, http_client.SNAPSHOT, bearer).body
        packed = http_client.fetch(web.port, http_client.SNAPSHOT, zipped).body
        if gzip.decompress(packed) != plain:
            raise SystemExit("bench: the compressed snapshot differs from the plain one")
        cpu_ms, scraped = [], b""
        for _ in range(SCRAPES):
            time.sleep(CACHED_SECONDS)
            web.settle()
            before = web.threads_cpu_seconds()
            scraped = http_client.fetch(web.port, "/metrics", zipped).body
            time.sleep(0.2)
            cpu_ms.append((web.threads_cpu_seconds() - before) * 1e3)
        whole = gzip.decompress(scraped)
        return SnapshotSizes(len(plain), len(packed), len(whole), len(scraped), median(cpu_ms))
    finally:
        fixtures.delete_dependencies()
