"""The way to a region: it delays both directions, keeps the order, and can be cut."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from demo.distance import HOST, LOOK_SECONDS, Distance

DELAY = 0.08


@asynccontextmanager
async def distant() -> AsyncIterator[Distance]:
    """A proxy to a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(echo, HOST, 0) as server:
        distance = Distance(0, server.sockets[0].getsockname()[1], DELAY)
        await distance.open()
        yield distance
        await distance.cut()


def test_each_direction_takes_the_delay_and_keeps_the_order() -> None:
    async def run() -> None:
        async with distant() as distance:
            reader, writer = await asyncio.open_connection(HOST, distance.port)
            began = time.monotonic()
            for number in range(100):
                writer.write(b"%d," % number)
                await writer.drain()
            writer.write_eof()

            received = await asyncio.wait_for(reader.read(-1), 10)

            took = time.monotonic() - began
            writer.close()
        assert received == b"".join(b"%d," % number for number in range(100))
        assert 2 * DELAY <= took < 5

    asyncio.run(run())


def test_while_the_file_exists_the_region_is_cut_off(tmp_path: Path) -> None:
    async def run() -> None:
        cut_file = tmp_path / "cut"
        async with distant() as distance:
            following = asyncio.create_task(distance.follow(cut_file))
            reader, writer = await asyncio.open_connection(HOST, distance.port)
            cut_file.touch()

            assert await asyncio.wait_for(reader.read(-1), 10) == b""
            with pytest.raises(OSError, match="Connect call failed"):
                await asyncio.open_connection(HOST, distance.port)

            cut_file.unlink()
            await asyncio.sleep(2 * LOOK_SECONDS)
            again = await asyncio.open_connection(HOST, distance.port)
            following.cancel()
            for each in (writer, again[1]):
                each.close()

    asyncio.run(run())


def test_a_target_that_is_away_ends_the_connection() -> None:
    async def run() -> None:
        async with await asyncio.start_server(lambda *_: None, HOST, 0) as server:
            gone = server.sockets[0].getsockname()[1]
        distance = Distance(0, gone, DELAY)
        await distance.open()
        reader, writer = await asyncio.open_connection(HOST, distance.port)

        assert await asyncio.wait_for(reader.read(-1), 10) == b""
        writer.close()
        await distance.cut()

    asyncio.run(run())
