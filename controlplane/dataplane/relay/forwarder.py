"""Sends a relay's spool and status to its upstream, at most once a second.

A batch is removed from the spool once the upstream has accepted it; until then it is sent again,
with the same number and content, also to another upstream and after a restart.
"""

import asyncio
import contextlib
import random
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from controlplane.core.environment_variables import WrongVariable
from controlplane.core.protocol import RELAY_BATCH
from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.emergency.order_list import count_applied_here
from controlplane.dataplane.ingest.check_counts import CallerCounts
from controlplane.dataplane.ingest.processes import ProcessStatus
from controlplane.dataplane.ingest.relay_message import RelayedCounts
from controlplane.dataplane.state import State

from . import batch, spool
from .process_identity import ProcessIdentity
from .relay_ledger import RelayLedger
from .spool import Record, Spool, SpoolFull
from .upstream import UNSUPPORTED, NotSupported, TokenRefused, UpstreamFailed

if TYPE_CHECKING:
    import httpx

INTERVAL_SECONDS = 1.0
CONNECT_SECONDS = 3.0
REQUEST_SECONDS = 15.0
STOP_SECONDS = 1.0
MAX_PAUSE_SECONDS = 10.0
MAX_RETRY_AFTER_SECONDS = 60.0
MAX_MESSAGE_BYTES = 1024 * 1024
MAX_MESSAGE_BATCHES = 100
MAX_NOTES_TURNS = 5
"""Batches of presences and acknowledgements in one message."""
MAX_COUNTED_SWITCHES = 2000
"""Most pairs of client and switch in one batch of `/check` counts."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ForwardingTiming:
    """Intervals of a forwarder, in seconds.

    The status is sent every `status` without news. `/check` counts are taken every `counts`, and
    spools of processes that are gone are looked for every `adopt`.
    """

    status: float = 5.0
    counts: float = 5.0
    adopt: float = 60.0


class Forwarder:
    """Sends what `ledger` holds to the upstreams of `config`: to one until a request fails."""

    def __init__(
        self,
        config: RelayConfig,
        state: State,
        ledger: RelayLedger,
        timing: ForwardingTiming = ForwardingTiming(),
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._config = config
        self._urls = config.upstreams
        self._name = config.plane
        self._url_index = 0
        self._failures = 0
        """Requests that failed since the last accepted one."""
        self._logged = ""
        self._identity: ProcessIdentity | None = None
        self._tls: ssl.SSLContext | None = None
        self._timing = timing
        self._adopted: list[Spool] = []
        self._adopted_at = time.monotonic()
        self._status_sent_at = float("-inf")
        self._counts_taken_at = float("-inf")
        self._sent: Mapping[UUID, datetime] = {}
        """Time of the last status that was sent, by process of a relay behind this one."""

    async def run(self) -> None:
        """Send what is due, until canceled."""
        # In a thread, because the first import takes long and would block the event loop.
        await asyncio.to_thread(import_module, "httpx")
        import httpx

        if any(url.startswith("https:") for url in self._urls):
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)
        async with self._make_client() as client:
            while True:
                pause = INTERVAL_SECONDS
                try:
                    await self.send_due(client)
                except UpstreamFailed as error:
                    pause = self.record_failure(error)
                except OSError as error:  # The disk; requests raise UpstreamFailed.
                    log.error("forwarder.spool_failed", error=str(error))
                    pause = MAX_PAUSE_SECONDS
                await asyncio.sleep(pause * random.uniform(1.0, 1.1))  # noqa: S311
                if not self._failures:
                    await self._wait_for_news()

    async def send_due(self, client: "httpx.AsyncClient") -> None:
        """Send what is due in one request; raise :class:`UpstreamFailed` if it is not accepted."""
        own = self._ledger.spool
        if own is None:
            return
        self._ledger.news.clear()
        if not self._failures:
            are_counts_due = time.monotonic() - self._counts_taken_at >= self._timing.counts
            await self._store_notes(own, counts=are_counts_due)
        await asyncio.to_thread(own.end_batch)
        await self._adopt(own)
        chosen = list(self._choose([own, *self._adopted]))
        is_status_due = time.monotonic() - self._status_sent_at >= self._timing.status
        if chosen or is_status_due:
            await self._send(client, self._describe(own), chosen)

    async def _send(
        self,
        client: "httpx.AsyncClient",
        status: ProcessStatus,
        chosen: Sequence[tuple[Spool, int]],
    ) -> None:
        """Send a status and batches of spools, and remove the batches once they are accepted."""
        batches = [
            content for each in chosen for content in await asyncio.to_thread(self._read, *each)
        ]
        behind = self._ledger.relay_statuses.list_recent()
        news = [each for each in behind if self._sent.get(each.process) != each.heard_at]
        await self._post(client, batch.assemble_message(status, news, batches))
        self._status_sent_at = time.monotonic()
        self._sent = {each.process: each.heard_at for each in behind}
        for holder, seq in chosen:
            await asyncio.to_thread(holder.remove, seq)

    async def report_stop(self) -> None:
        """Send a last status, which says that the process has stopped; give up after a second.

        What is in the spool then is sent after a restart.
        """
        if self._identity is None:  # No status was sent.
            return
        try:
            async with asyncio.timeout(STOP_SECONDS), self._make_client() as client:
                await self.send_stop(client)
        except (UpstreamFailed, TimeoutError) as error:
            log.info("forwarder.stop_not_reported", kind=type(error).__name__, error=str(error))

    async def send_stop(self, client: "httpx.AsyncClient") -> None:
        """Move all notes from memory to the spool, and send that with the last status.

        Raise :class:`UpstreamFailed` if it is not accepted.
        """
        own = self._ledger.spool
        if own is not None and self._identity is not None:
            await self._store_notes(own, counts=True)
            await asyncio.to_thread(own.end_batch)
            status = replace(self._identity.describe(self._state), is_stopped=True)
            await self._send(client, status, list(self._choose([own])))

    def _make_client(self) -> "httpx.AsyncClient":
        import httpx

        timeout = httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS)
        return httpx.AsyncClient(verify=self._tls or False, timeout=timeout, trust_env=False)

    async def _wait_for_news(self) -> None:
        """Wait until there is something new to send, or the status is due."""
        due = self._status_sent_at + self._timing.status - time.monotonic()
        if self._ledger.spool is not None and self._ledger.spool.list_ended():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, due)):
                await self._ledger.news.wait()

    async def _store_notes(self, own: Spool, *, counts: bool) -> None:
        """Move presences and acknowledgements, and with `counts` also those, to the spool."""
        buffer = self._ledger.presence_buffer
        for _ in range(MAX_NOTES_TURNS):
            presences, acks = buffer.take_due(time.monotonic(), batch.MAX_NOTES, INTERVAL_SECONDS)
            if not (presences or acks):
                break
            if not await self._store(own, batch.dump_notes(presences, acks, ())):
                buffer.put_back(presences, acks)
                return
        if not counts:
            return
        self._counts_taken_at = time.monotonic()
        until = self._state.wall()
        for some in _split_counts(self._ledger.check_counter.take_counts(), until):
            if not await self._store(own, batch.dump_notes((), (), some)):
                log.warning("forwarder.counts_lost", callers=len(some))

    async def _store(self, own: Spool, notes: bytes) -> bool:
        """Store notes as a batch; return False if the spool can't take them."""
        try:
            await asyncio.to_thread(own.append, [Record(spool.NOTES, notes)], reserved=True)
        except SpoolFull:
            return False
        except OSError as error:
            log.warning("spool.write_failed", error=str(error))
            return False
        return True

    async def _adopt(self, own: Spool) -> None:
        """Take over the spools of processes that are gone, and release those that are sent."""
        for each in [each for each in self._adopted if not each.list_ended()]:
            self._adopted.remove(each)
            each.close()
        if self._adopted or time.monotonic() - self._adopted_at < self._timing.adopt:
            return
        self._adopted_at = time.monotonic()
        self._adopted = await asyncio.to_thread(_claim_others, own.root)

    def _choose(self, spools: Sequence[Spool]) -> Iterator[tuple[Spool, int]]:
        """Yield the oldest batches of each spool, as many as fit in a message.

        After a failure, yield only the oldest one: an upstream may be too slow for more.
        """
        size = number = 0
        most = 1 if self._failures else MAX_MESSAGE_BATCHES
        for holder in spools:
            for seq in holder.list_ended():
                size, number = size + holder.size_of(seq), number + 1
                if number > 1 and (size > MAX_MESSAGE_BYTES or number > most):
                    return
                yield holder, seq

    def _read(self, holder: Spool, seq: int) -> list[bytes]:
        """Return the batches in a file of a spool: the relay's own, and those of relays behind."""
        found = holder.read(seq)
        if found.reports or found.notes:
            own = batch.assemble_batch(self._name, holder.process, seq, found.reports, found.notes)
            return [own, *found.batches]
        return found.batches

    def _describe(self, own: Spool) -> ProcessStatus:
        if self._identity is None:
            self._identity = ProcessIdentity(self._name, is_relay=True, process=own.process)
        orders, polling = count_applied_here(self._state)
        return self._identity.describe(self._state, polling=polling, applied_orders=orders)

    async def _post(self, client: "httpx.AsyncClient", body: bytes) -> None:
        import httpx

        url = self._urls[self._url_index % len(self._urls)]
        headers = {
            b"Authorization": f"Bearer {await self._read_token()}".encode(),
            b"Content-Type": b"application/json",
            b"Switchgear-Relay": self._name.encode(),
        }
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                response = await client.post(f"{url}{RELAY_BATCH}", content=body, headers=headers)
        except (httpx.HTTPError, TimeoutError) as error:
            raise UpstreamFailed(f"no answer ({type(error).__name__})") from error
        if response.status_code != 200:
            raise _describe_refusal(response)
        self._ledger.requests["accepted"] += 1
        if self._logged:
            log.info("forwarder.recovered", url=url, failures=self._failures)
        self._failures, self._logged = 0, ""

    async def _read_token(self) -> str:
        try:
            return await asyncio.to_thread(self._config.read_token)
        except WrongVariable as error:
            raise TokenRefused(str(error)) from error

    def record_failure(self, error: UpstreamFailed) -> float:
        """Log a failed request, choose the next upstream, and return the seconds to wait."""
        self._ledger.requests["failed"] += 1
        if str(error) != self._logged:
            url = self._urls[self._url_index % len(self._urls)]
            needs_action = isinstance(error, NotSupported | TokenRefused)
            write = log.error if needs_action else log.warning
            write("forwarder.failed", url=url, error=str(error))
        self._logged = str(error)
        self._failures += 1
        self._url_index += 1
        rounds = self._failures // len(self._urls)
        pause = min(INTERVAL_SECONDS * 2.0 ** min(rounds, 8), MAX_PAUSE_SECONDS)
        return max(pause, error.retry_after)


def _claim_others(root: Path) -> list[Spool]:
    """Return the spools under `root` that no process has, if there is something to send."""
    found = []
    for each in Spool.claim_free(root):
        if each.list_ended():
            found.append(each)
        else:
            each.close()
    return found


def _split_counts(
    counts: Mapping[str, CallerCounts], until: datetime
) -> Iterator[list[RelayedCounts]]:
    """Yield the counts in parts that fit in a batch."""
    some: list[RelayedCounts] = []
    switches = 0
    for caller, each in counts.items():
        size = len(each.switches)
        if some and (switches + size > MAX_COUNTED_SWITCHES or len(some) == batch.MAX_CALLERS):
            yield some
            some, switches = [], 0
        some.append(RelayedCounts(caller=caller, until=until, counts=each))
        switches += size
    if some:
        yield some


def _describe_refusal(response: "httpx.Response") -> UpstreamFailed:
    """Return the error for a response whose status is not 200."""
    status = response.status_code
    reason = f"it answered with status {status}"
    if status in {401, 403}:
        return TokenRefused(reason)
    if status in UNSUPPORTED:
        return NotSupported(reason)
    wait = response.headers.get("retry-after", "")
    seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
    return UpstreamFailed(reason, min(seconds, MAX_RETRY_AFTER_SECONDS))
