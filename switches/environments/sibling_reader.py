"""Reading of the siblings' states: in the background, at most every few seconds per process."""

import asyncio
import functools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import httpx
import orjson
import structlog
from django.utils import timezone

from controlplane.core.egress_guard.allowed_networks import Allowance, UrlRefused
from controlplane.core.egress_guard.guard import GuardedTransport
from controlplane.core.egress_guard.name_resolution import Unresolved
from controlplane.core.environment_variables import Sibling

from .state import EnvironmentState, parse_state

log = structlog.get_logger(__name__)

PATH = "/api/v1/environment/"
TIMEOUT_SECONDS = 2.0
REFRESH_SECONDS = 4.0
OUTDATED_SECONDS = 15.0
MAX_WAIT_SECONDS = 1.0
MAX_BYTES = 1_000_000
# Whoever sets the variable may choose any address, as with DATA_PLANES.
ANYWHERE = Allowance("SIBLINGS", own_networks=("0.0.0.0/0", "::/0"))
MEANINGS = {
    401: "It refuses the token of SIBLING_TOKENS.",
    403: "The token of SIBLING_TOKENS lacks the scope switches:read there.",
    404: "There is no console of this release at its URL.",
}


@dataclass(frozen=True)
class SiblingReading:
    """The last state of a sibling and when it came, and the `problem` of the last attempt, if any.

    Both are empty before the first attempt.
    """

    sibling: Sibling
    state: EnvironmentState | None = None
    heard_at: datetime | None = None
    problem: str = ""


class SiblingReader:
    """The last readings of all siblings, in memory."""

    def __init__(self, siblings: Sequence[Sibling]) -> None:
        self._lock = threading.Lock()
        self._readings = {one.name: SiblingReading(one) for one in siblings}
        self._refreshed = float("-inf")
        self._running: threading.Thread | None = None

    def read(self) -> list[SiblingReading]:
        """Return the last readings, and begin to read again if they are a few seconds old.

        Wait for that, at most `MAX_WAIT_SECONDS`, if they are older than `OUTDATED_SECONDS`.
        """
        with self._lock:
            age, running = time.monotonic() - self._refreshed, self._running
            if age >= REFRESH_SECONDS and self._readings and running is None:
                running = threading.Thread(target=self._refresh, name="read siblings", daemon=True)
                running.start()
                self._running = running
        if running is not None and age >= OUTDATED_SECONDS:
            running.join(MAX_WAIT_SECONDS)
        return list(self._readings.values())

    def _refresh(self) -> None:
        try:
            for reading in asyncio.run(self._read_all()):
                self._readings[reading.sibling.name] = reading
        finally:
            with self._lock:
                self._refreshed, self._running = time.monotonic(), None

    async def _read_all(self) -> list[SiblingReading]:
        return await asyncio.gather(*map(_read_again, self._readings.values()))


@functools.cache
def get_reader(siblings: tuple[Sibling, ...]) -> SiblingReader:
    return SiblingReader(siblings)


async def _read_again(last: SiblingReading) -> SiblingReading:
    """Return the sibling's present state, or the last one with the problem."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            status, content = await _fetch(last.sibling)
    except (TimeoutError, httpx.TimeoutException):
        return replace(last, problem=f"No response within {TIMEOUT_SECONDS:g} s.")
    except (UrlRefused, Unresolved, OSError, httpx.HTTPError, httpx.InvalidURL) as error:
        log.info("sibling.not_read", sibling=last.sibling.name, error=repr(error))
        return replace(last, problem="The connection failed.")
    if status != httpx.codes.OK:
        return replace(last, problem=MEANINGS.get(status, f"It responds with status {status}."))
    try:
        state = parse_state(orjson.loads(content))
    except ValueError as error:
        log.info("sibling.not_understood", sibling=last.sibling.name, error=str(error))
        return replace(last, problem="Its response is not the state of a console.")
    return SiblingReading(last.sibling, state, timezone.now())


async def _fetch(sibling: Sibling) -> tuple[int, bytes]:
    """Return status and body; the body is cut at `MAX_BYTES`."""
    headers = {"Authorization": f"Bearer {sibling.token}", "User-Agent": "Switchgear"}
    content = bytearray()
    async with (
        httpx.AsyncClient(
            transport=GuardedTransport(ANYWHERE), headers=headers, timeout=TIMEOUT_SECONDS
        ) as client,
        client.stream("GET", sibling.url + PATH) as response,
    ):
        async for part in response.aiter_bytes():
            content += part
            if len(content) > MAX_BYTES:
                break
    return response.status_code, bytes(content)
