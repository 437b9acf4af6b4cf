"""Admission control in front of Django: deadlines, body limits, and bulkheads.

While the data plane can't reach PostgreSQL, new requests get a 503 at once, and running requests
get it after `DEADLINE_SECONDS`. Paths that need no database (static files, documentation,
health, metrics) pass.
Without this gate, Django would write bodies of any size to disk, and start a thread per request.
"""

import asyncio
import os
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from operator import attrgetter
from typing import Any

import structlog
from asgiref.sync import ThreadSensitiveContext
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from controlplane.bulkhead import Limits, Permit, RequestBulkhead, RequestCaller
from controlplane.core.console_urls import SCIM_ROOT
from controlplane.core.deadline import IN_SCOPE
from controlplane.core.errors import (
    NO_DATABASE,
    Busy,
    DomainError,
    TooManyRequests,
    Unavailable,
)
from controlplane.core.http.requests import SIGNED_IN
from controlplane.dataplane import histograms
from controlplane.dataplane.histograms import Histogram
from controlplane.dataplane.state import State
from controlplane.request_body import MAX_BYTES, Bodies
from controlplane.token_reads import EXECUTOR

from .caller_identity import SLACK, Callers
from .core.protocol import MAX_BODY_BYTES, max_body_bytes
from .dataplane.serving.call import ASGIApplication, Call, Message, Receive, Scope, Send

DEADLINE_SECONDS = 8.0
LOAD_SECONDS = 25.0
"""Deadline of loads and comparisons of the whole configuration."""
RETRY_AFTER_SECONDS = 3
_AWAY = (
    "The database does not respond. Nothing changed; try again in a moment. To stop something now,"
    " use /emergency/."
)
REFUSAL_SECONDS = 0.5
UNREAD_SECONDS = 20.0
"""Longest wait for a client to read a part of a response."""
REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Upper bounds of the latency histogram's buckets."""
NO_DATABASE_PATHS = re.compile(r"/(static|docs|health)/.*|/docs|/metrics/?")
"""Paths that need no database."""
KILL = re.compile(
    r"/api/v1/(switches/[^/]+/[^/]+/(engage|extend|reconfirm)|switches/trip|hooks/[^/]+)/?"
    r"|/api/v1/ramps/[^/]+/abort/?"
    r"|/switches/engage/.*|/switches/[^/]+/[^/]+/(extend|reconfirm)/|/ramps/[^/]+/abort/"
    r"|/confirm/|/slack/.*"
)
"""Paths of requests that engage a switch or keep it engaged, including dialogs and Slack."""
LOAD = re.compile(r"/api/v1/configuration(/diff)?/?")
EXPORT = re.compile(r"/api/v1/.+/export/?")
# Together with the sockets' threads, these threads need fewer connections than DATABASE_POOL.
OPEN = Limits(threads=4, each=3, strangers=3, wait_seconds=8)
ORDINARY = Limits(threads=6, each=4, strangers=3, wait_seconds=4)
KILLS = Limits(threads=4, each=2, strangers=2, wait_seconds=6)
MAX_ORDINARY_BESIDE_KILL = 2
"""Maximum number of ordinary requests that run while a kill request runs."""
MAX_EXPORTS = 2
"""Maximum number of concurrent exports, each of which occupies a thread until it is read."""
_BULKHEAD_METRICS = (
    (GaugeMetricFamily, "in_flight", "Requests in progress.", attrgetter("running")),
    (GaugeMetricFamily, "queued", "Requests waiting for a thread.", attrgetter("queued")),
    (
        CounterMetricFamily,
        "refused",
        "Requests rejected because no thread was free.",
        attrgetter("refused"),
    ),
)

log = structlog.get_logger(__name__)


class RequestGate:
    """ASGI middleware that admits or refuses requests; `refuse` sends the response for an error."""

    def __init__(
        self,
        inner: ASGIApplication,
        state: State,
        refuse: Callable[[Call, DomainError], Awaitable[None]],
        deadline_seconds: float = DEADLINE_SECONDS,
        sockets: ASGIApplication | None = None,
    ) -> None:
        self._inner = inner
        self._state = state
        self._refuse = refuse
        self._deadline_seconds = deadline_seconds
        self._sockets = sockets
        self._callers = Callers(state)
        # By (is known caller, is kill): a flood of large bodies only uses the memory of its class.
        self._bodies = defaultdict[tuple[bool, bool], Bodies](lambda: Bodies(MAX_BYTES // 4))
        self._open = RequestBulkhead("open", OPEN)
        self._kills = RequestBulkhead("kill", KILLS, on_free=lambda: self._ordinary.dispatch())
        self._ordinary = RequestBulkhead("ordinary", ORDINARY, self._may_start)
        self._exporting: set[RequestCaller] = set()
        self._seconds: dict[tuple[str, str, str], Histogram] = {}

    def metrics(self) -> Iterator[Metric]:
        """Yield metrics: request latencies by kind and status class, and use of the bulkheads."""
        yield histograms.build_family(
            "switchgear_web_request_seconds",
            "Response time of requests in seconds, by kind and status class.",
            ("kind", "code", "worker"),
            list(self._seconds.items()),
        )
        for family, name, about, read in _BULKHEAD_METRICS:
            metric = family(f"switchgear_web_bulkhead_{name}", about, labels=("bulkhead", "worker"))
            for bulkhead in (self._kills, self._ordinary, self._open):
                metric.add_metric((bulkhead.name, str(os.getpid())), read(bulkhead))
            yield metric

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # Sockets have no deadline, and their application handles an unreachable database.
            if self._sockets is not None:
                await self._sockets(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close"})
            return
        call = Call(scope, receive, send)
        began = time.perf_counter()
        needs_database = NO_DATABASE_PATHS.fullmatch(scope["path"]) is None
        try:
            if needs_database and not self._state.database_reachable:
                raise Unavailable(_AWAY, retry_after=RETRY_AFTER_SECONDS)
            caller = self._callers.caller_of(scope, call.headers, b"")
            is_kill = KILL.fullmatch(scope["path"]) is not None
            with self._bodies[caller.known, is_kill].budget() as budget:
                body = await budget.read(receive, max_body_bytes(scope["path"]))
                if scope["path"].startswith(SLACK):  # Slack signs the body.
                    caller = self._callers.caller_of(scope, call.headers, body)
                # A larger webhook body would occupy a thread for kills for seconds.
                await self._admit(call, caller, body, is_kill and len(body) <= MAX_BODY_BYTES)
        except DomainError as error:
            await self._refuse(call, error)
        finally:
            if needs_database:
                self.observe(scope["path"], call.status, time.perf_counter() - began)

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Record a response's latency in the metrics, unless the client has left (`status` 0)."""
        if not status:
            return
        kind = "api" if path.startswith(("/api/", SCIM_ROOT)) else "page"
        labels = kind, f"{status // 100}xx", str(os.getpid())
        self._seconds.setdefault(labels, Histogram(REQUEST_SECONDS)).observe(seconds)

    async def _admit(self, call: Call, caller: RequestCaller, body: bytes, is_kill: bool) -> None:
        bulkhead = self._kills if is_kill else self._ordinary
        is_load = LOAD.fullmatch(call.scope["path"]) is not None
        seconds = LOAD_SECONDS if is_load else self._deadline_seconds
        ends: float | None = time.monotonic() + seconds
        if NO_DATABASE_PATHS.fullmatch(call.scope["path"]):
            bulkhead, ends = self._open, None
        try:
            permit = await bulkhead.acquire(caller)
        except (Busy, TooManyRequests):
            # Slow down callers that retry at once, as they would keep the event loop busy.
            await asyncio.sleep(REFUSAL_SECONDS)
            raise
        is_export = EXPORT.fullmatch(call.scope["path"]) is not None
        if is_export and (error := self._export_refusal(caller)):
            bulkhead.release(permit)
            raise error
        exchange = _Exchange(call.receive, call.send, body)
        task = asyncio.ensure_future(self._run(call.scope, exchange, permit, ends))
        task.add_done_callback(lambda _task: bulkhead.release(permit))
        if is_export:
            self._exporting.add(caller)
            task.add_done_callback(lambda _task: self._exporting.discard(caller))
        await self._wait_for_response(call, task, exchange, ends)

    def _export_refusal(self, caller: RequestCaller) -> DomainError | None:
        """Return an error if this caller, or `MAX_EXPORTS` others, run an export; else None."""
        if caller in self._exporting:
            message = "You already have an export running. Try again when it is done."
            return TooManyRequests(message, retry_after=RETRY_AFTER_SECONDS)
        message = "Other exports are running. Try again in a moment."
        is_full = len(self._exporting) >= MAX_EXPORTS
        return Busy(message, retry_after=RETRY_AFTER_SECONDS) if is_full else None

    async def _run(
        self, scope: Scope, exchange: "_Exchange", permit: Permit, ends: float | None
    ) -> None:
        signed_in: dict[str, Any] = {}
        added = {IN_SCOPE: ends, SIGNED_IN: signed_in, EXECUTOR: permit.executor}
        async with ThreadSensitiveContext(executor=permit.executor):
            await self._inner({**scope, **added}, exchange.receive, exchange.send)
        self._callers.note(signed_in)

    async def _wait_for_response(
        self, call: Call, task: "asyncio.Task[None]", exchange: "_Exchange", ends: float | None
    ) -> None:
        """Wait for the response to start; if it has not at the time `ends`, send an error."""
        try:
            timeout = None if ends is None else max(0.0, ends - time.monotonic())
            await asyncio.wait({task}, timeout=timeout)
        except asyncio.CancelledError:  # The caller went away.
            task.cancel()
            raise
        if task.done() or exchange.started:
            try:
                await task
            except _ClientTooSlow:  # The server cuts the unfinished response.
                log.info("gate.response_abandoned", path=call.scope["path"])
            call.status = exchange.status
            return
        # The thread is stuck in the database and can't be stopped. Its response is dropped, and its
        # writes are rolled back by the deadline check before the commit.
        exchange.muted = True
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        await self._refuse(call, Unavailable(NO_DATABASE, retry_after=RETRY_AFTER_SECONDS))

    def _may_start(self, running: int) -> bool:
        return running < MAX_ORDINARY_BESIDE_KILL or not self._kills.running


class _ClientTooSlow(Exception):
    """Raised if the client has stopped reading the response."""


class _Exchange:
    """A request's ASGI receive and send channels, which record the status of the response."""

    def __init__(self, receive: Receive, send: Send, body: bytes) -> None:
        self._body: bytes | None = body
        self._in = receive
        self._out = send
        self.started = False
        self.status = 0
        self.muted = False

    async def receive(self) -> Message:
        if self._body is None:
            return await self._in()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if self.muted:
            return
        self.started = True
        self.status = message.get("status", self.status)
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                await self._out(message)
        except TimeoutError:
            raise _ClientTooSlow from None
