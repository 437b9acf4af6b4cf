"""A TCP proxy to a real server that tests can freeze, cut and restore."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], bool], seconds: float) -> float:
    """Return the seconds until the condition held; fail after `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.005)
    return time.monotonic() - began


class Background:
    """An event loop in a thread of its own, for tests that act while it runs."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=20)

    def close(self) -> None:
        async def end_all() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.run(end_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=5)
        self.loop.close()


@contextlib.contextmanager
def background() -> Iterator[Background]:
    made = Background()
    try:
        yield made
    finally:
        made.close()


class Line:
    """Forwards a loopback port to `host:port`; lives on a background loop."""

    def __init__(self, loop: Background, host: str, port: int) -> None:
        self._loop = loop
        self._far_end = (host, port)
        self._flows = asyncio.Event()
        self._flows.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.slams = False
        """True to accept connections only to close them at once."""
        self.cut_before = b""
        """A connection that sends this ends instead; empty for none."""
        self.cut_after = b""
        """A connection that sends this ends when it is on its way; empty for none."""
        self.cut_once_sent = b""
        """Bytes that a connection has to have sent before it is cut so."""
        self.accepted = 0
        self.far_ports: list[int] = []
        """Local ports of the connections to the far end, also of those that ended."""
        self.mend()

    def lead_to(self, port: int) -> None:
        """Forward new connections to another port of the same host."""
        self._far_end = (self._far_end[0], port)

    def freeze(self) -> None:
        """Stop forwarding; connecting still succeeds, as to a stopped process."""
        self._loop.loop.call_soon_threadsafe(self._flows.clear)

    def thaw(self) -> None:
        self._loop.loop.call_soon_threadsafe(self._flows.set)

    def cut(self) -> None:
        """Close all connections and refuse new ones, as if the server were gone."""
        self._loop.run(self._close())

    def mend(self) -> None:
        self._loop.run(self._open())

    async def _open(self) -> None:
        if self._server is not None and self._server.is_serving():
            return
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        pumps = set(self._pumps)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.slams:
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._far_end)
        except OSError:  # Connection refused.
            writer.close()
            return
        self.far_ports.append(far_writer.get_extra_info("sockname")[1])
        ends = (writer, far_writer)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink, ends))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        ends: tuple[asyncio.StreamWriter, ...],
    ) -> None:
        has_sent = False
        with contextlib.suppress(OSError):
            try:
                while data := await source.read(65536):
                    await self._flows.wait()
                    has_sent = has_sent or self.cut_once_sent in data
                    if has_sent and self.cut_before and self.cut_before in data:
                        return
                    sink.write(data)
                    await sink.drain()
                    if has_sent and self.cut_after and self.cut_after in data:
                        return
            finally:
                for end in ends:
                    end.close()
