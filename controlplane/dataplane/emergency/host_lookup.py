"""DNS lookups that can hang without occupying a thread that others need."""

import asyncio
import contextlib
import threading

from controlplane.core.egress_guard.name_resolution import Resolve

LOOKUP_SECONDS = 3.0


class HostLookup:
    """Looks up the addresses of one host, and remembers the last ones found.

    A lookup that hangs keeps its thread. No other one begins before it ends.
    """

    def __init__(self, host: str, port: int, resolver: Resolve) -> None:
        self.addresses: tuple[str, ...] = ()
        self._host = host
        self._port = port
        self._resolver = resolver
        self._thread: threading.Thread | None = None

    async def refresh(self) -> None:
        """Look up the addresses, for at most `LOOKUP_SECONDS`; keep the old ones if that fails."""
        if self._thread is not None and self._thread.is_alive():
            return
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()

        def look_up() -> None:
            try:
                found = self._resolver(self._host, self._port)
            except (OSError, UnicodeError, OverflowError):
                found = []
            with contextlib.suppress(RuntimeError):  # The loop has ended meanwhile.
                loop.call_soon_threadsafe(_set_result, answer, found)

        # Not in the loop's executor, whose few threads also write orders to disk.
        self._thread = threading.Thread(target=look_up, daemon=True, name="host-lookup")
        self._thread.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOKUP_SECONDS):
                if found := await answer:
                    self.addresses = tuple(found)


def _set_result(answer: asyncio.Future[list[str]], found: list[str]) -> None:
    if not answer.done():
        answer.set_result(found)
