"""Measures the ingestion of pushed SLO counters: points per second, and their CPU cost.

The server has a CPU core of its own; PostgreSQL is not pinned. Each sender pushes for its own SLOs,
of ten sources each, and sends a batch once the previous one is answered.
"""

import gc
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection

import orjson

from . import latencies, stalls
from .latencies import Latencies
from .servers import HOST, ServerUnderTest

SLOS = 1000
SOURCES = 10
SENDERS = 2
WARM_TURNS = 2
WANTED_POINTS = {5000: 10_000.0}
"""Target by points in a batch. Points of small batches cost more, as the request has a cost."""
PATH = "/api/v1/sli/"


@dataclass(frozen=True)
class PushCosts:
    """The points stored per second in batches of `batch` points, and the latencies of the batches.

    `cpu_us` is the server's CPU time per point, in microseconds.
    """

    batch: int
    points: float
    cpu_us: float
    latencies: Latencies


def create_slos() -> None:
    """Create a thousand SLOs that expect pushed counters."""
    from controlplane.core.clock import db_now
    from slo.models import Sli, Slo

    now = db_now()
    slos = Slo.objects.bulk_create(
        Slo(
            name=_name(number),
            kind="availability",
            target="0.999",
            source={"type": "push"},
            created_at=now,
            changed_at=now,
        )
        for number in range(SLOS)
    )
    Sli.objects.bulk_create(Sli(slo=slo, created_at=now) for slo in slos)


def measure(server: ServerUnderTest, token: str, seconds: float) -> list[PushCosts]:
    """Push small batches and then large ones, for `seconds` each."""
    return [_push(server, token, each, seconds) for each in (50, 500)]


def _push(server: ServerUnderTest, token: str, slos: int, seconds: float) -> PushCosts:
    """Push batches of points for `seconds`; each batch has every source of `slos` SLOs."""
    took: list[float] = []
    before = 0.0
    ends = time.monotonic() + 3600
    warm = threading.Barrier(SENDERS + 1)
    gc.collect()

    def send(sender: int) -> None:
        client = HTTPConnection(HOST, server.port, timeout=30)
        own = range(sender * SLOS // SENDERS, (sender + 1) * SLOS // SENDERS)
        parts = [own[start : start + slos] for start in range(0, len(own), slos)]
        for turn in range(WARM_TURNS):
            for part in parts:
                _post(client, token, part, turn)
        warm.wait()
        warm.wait()
        turn = WARM_TURNS
        while time.monotonic() < ends:
            for part in parts:
                took.append(_post(client, token, part, turn))
            turn += 1
        client.close()

    with stalls.watch_stalls() as stalled:
        threads = [threading.Thread(target=send, args=(sender,)) for sender in range(SENDERS)]
        for thread in threads:
            thread.start()
        warm.wait()
        began, before = time.monotonic(), server.cpu_seconds()
        ends = began + seconds
        warm.wait()
        for thread in threads:
            thread.join()
        wall, cpu = time.monotonic() - began, server.cpu_seconds() - before
    points = len(took) * slos * SOURCES
    return PushCosts(
        batch=slos * SOURCES,
        points=points / wall,
        cpu_us=cpu / points * 1e6,
        latencies=latencies.summarize((each * 1e3 for each in took), stalled.worst_ms),
    )


def _post(client: HTTPConnection, token: str, part: range, turn: int) -> float:
    """Push a batch of points and return the seconds until the response; end the run if refused."""
    total = 1000 * turn + int(time.time() * 10)
    points = [
        {"slo": _name(n), "source": f"host-{s}", "boot": "b", "good": total - 1, "total": total}
        for s in range(SOURCES)
        for n in part
    ]
    body = orjson.dumps({"points": points})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    began = time.monotonic()
    client.request("POST", PATH, body, headers)
    response = client.getresponse()
    content = response.read()
    took = time.monotonic() - began
    if response.status != 200 or orjson.loads(content)["refused"]:
        raise SystemExit(f"bench: POST {PATH}: {response.status} {content[:500]!r}")
    return took


def _name(number: int) -> str:
    return f"pushed-{number}"
