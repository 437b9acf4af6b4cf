"""The way to a distant region: a TCP proxy that delays what passes, and can be cut.

Run as `python -m demo.distance PORT TARGET_PORT MILLISECONDS CUT_FILE`, all on loopback. While the
file exists, the region is cut off: connections end, and new ones are refused.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

HOST = "127.0.0.1"
CHUNK_BYTES = 64 * 1024
WAITING = 256
"""Maximum number of delayed chunks of a connection; more wait with the sender."""
LOOK_SECONDS = 0.25


class Distance:
    """A proxy from `port` to `target` that delays each direction by `seconds`."""

    def __init__(self, port: int, target: int, seconds: float) -> None:
        self.port = port
        self._target = target
        self._seconds = seconds
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Accept connections; without effect if they are accepted already."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, HOST, self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections, and refuse new ones."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        tasks = [*self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def follow(self, cut_file: Path) -> None:
        """Be cut while `cut_file` exists, until canceled."""
        while True:
            await (self.cut() if cut_file.exists() else self.open())
            await asyncio.sleep(LOOK_SECONDS)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        writers = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
            writers.append(far_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer))
                group.create_task(self._pass(far_reader, writer))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass  # Refused, broken off, or cut: both ends are closed.
        finally:
            for each in writers:
                each.close()

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass on what arrives, each chunk after the delay; at its end, end the other direction."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING)

        async def read() -> None:
            while data := await source.read(CHUNK_BYTES):
                await waiting.put((loop.time() + self._seconds, data))
            await waiting.put((loop.time() + self._seconds, b""))

        reading = asyncio.create_task(read())
        try:
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not data:
                    break
                sink.write(data)
                await sink.drain()
            with contextlib.suppress(OSError):
                sink.write_eof()
        finally:
            reading.cancel()


async def main(port: int, target: int, milliseconds: int, cut_file: Path) -> None:
    await Distance(port, target, milliseconds / 1000).follow(cut_file)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
