"""Bodies of answers: those that nobody wants, and those that are read slowly."""

import asyncio
import gzip
import threading
import time
import tracemalloc

import httpx
import pytest

from switchgear.adapters.httpx import AsyncTransport, Patterns, Transport
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.parameters import BulkheadParameters, RetryParameters
from switchgear.patterns.retry import Retry
from tests.wire.http_server import Asked, Said, in_turn, serving

QUICK = RetryParameters(attempts=3, base_seconds=0.0)
LONG = 20.0
TRY = 0.5
"""Seconds for one try, where that matters."""
ZIPPED = {"Content-Encoding": "gzip"}


def ask(server, **parts):
    transport = Transport(Patterns(**parts), httpx.HTTPTransport(verify=False))
    with httpx.Client(transport=transport, timeout=LONG) as client:
        return client.get(server.url)


def aask(server, **parts):
    async def main():
        transport = AsyncTransport(Patterns(**parts), httpx.AsyncHTTPTransport(verify=False))
        async with httpx.AsyncClient(transport=transport, timeout=LONG) as client:
            return await client.get(server.url)

    return asyncio.run(main())


def slowly(server, pause, **parts):
    """The chunks of a body; its reader takes a pause after the first."""
    transport, chunks = Transport(Patterns(**parts), httpx.HTTPTransport(verify=False)), []
    with httpx.Client(transport=transport) as client, client.stream("GET", server.url) as answer:
        for chunk in answer.iter_bytes():
            if not chunks:
                time.sleep(pause)
            chunks.append(chunk)
    return chunks


def aslowly(server, pause, **parts):
    async def main():
        transport = AsyncTransport(Patterns(**parts), httpx.AsyncHTTPTransport(verify=False))
        chunks = []
        async with (
            httpx.AsyncClient(transport=transport) as client,
            client.stream("GET", server.url) as answer,
        ):
            async for chunk in answer.aiter_bytes():
                if not chunks:
                    await asyncio.sleep(pause)
                chunks.append(chunk)
        return chunks

    return asyncio.run(main())


both = pytest.mark.parametrize("ask_it", [ask, aask])
both_slowly = pytest.mark.parametrize("read", [slowly, aslowly])


@both
def test_a_body_that_nobody_wants_may_be_garbage(ask_it):
    with serving(in_turn(Said(503, ZIPPED, b"no gzip at all"), Said())) as server:
        answer = ask_it(server, retry=Retry("backend", QUICK))
    assert (answer.status_code, len(server.asked)) == (200, 2)
    assert len({each.connection for each in server.asked}) == 1


@both
def test_a_body_that_nobody_wants_is_not_unpacked(ask_it):
    bomb = gzip.compress(b"\0" * 20_000_000)
    with serving(in_turn(Said(503, ZIPPED, bomb), Said())) as server:
        tracemalloc.start()
        try:
            ask_it(server, retry=Retry("backend", QUICK))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert len({each.connection for each in server.asked}) == 1
    assert peak < 10_000_000


@both
def test_a_body_that_nobody_wants_is_not_waited_for(ask_it):
    over = threading.Event()

    def nothing():
        over.wait(LONG)
        yield b""

    stalled = Said(503, {"Content-Length": "10"}, bits=nothing())
    with serving(in_turn(stalled, Said())) as server:
        began = time.monotonic()
        answer = ask_it(server, retry=Retry("backend", QUICK))
        took = time.monotonic() - began
        over.set()
    assert (answer.status_code, len(server.asked)) == (200, 2)
    assert took < LONG / 2


@both
def test_a_body_that_nobody_wants_and_that_drips_is_not_waited_for(ask_it):
    over, sent = threading.Event(), []

    def drip():
        while len(sent) < 1000 and not over.wait(0.02):
            sent.append(b".")
            yield b"."

    dripping = Said(503, {"Content-Length": "1000"}, bits=drip())
    with serving(in_turn(dripping, Said())) as server:
        answer = ask_it(server, retry=Retry("backend", QUICK))
        so_far = len(sent)
        over.set()
    assert answer.status_code == 200
    assert so_far < 500


@both
def test_what_fails_while_an_answer_is_judged_takes_no_place_along(ask_it):
    def no_chance() -> float:
        raise RuntimeError("no chance")

    bulkhead = Bulkhead("backend", BulkheadParameters(limit=1))
    for _ in range(2):
        with serving(in_turn(Said(503))) as server, pytest.raises(RuntimeError, match="no chance"):
            ask_it(server, bulkhead=bulkhead, retry=Retry("backend", QUICK, rng=no_chance))
        assert bulkhead.look().in_flight == 0


def test_what_fails_while_an_answer_is_judged_takes_no_connection_along():
    def no_chance() -> float:
        raise RuntimeError("no chance")

    limits = httpx.Limits(max_connections=1)
    parts = Patterns(retry=Retry("backend", QUICK, rng=no_chance))
    inner = httpx.HTTPTransport(verify=False, limits=limits)
    with (
        serving(in_turn(Said(503), Said())) as server,
        httpx.Client(transport=Transport(parts, inner), timeout=2.0) as client,
    ):
        with pytest.raises(RuntimeError):
            client.get(server.url)
        assert client.get(server.url).status_code == 200


@both_slowly
def test_a_reader_that_takes_its_time_gets_the_whole_body(read):
    with serving(in_turn(Said(body=b"x" * 150_000))) as server:
        chunks = read(server, TRY * 1.25, timeout_seconds=TRY)
    assert len(b"".join(chunks)) == 150_000


@both_slowly
def test_a_server_that_takes_its_time_is_late_whatever_its_reader_takes(read):
    over = threading.Event()

    def drip():
        while not over.wait(TRY / 8):
            yield b"."

    def answer(asked: Asked) -> Said:
        return Said(bits=drip())

    with serving(answer) as server:
        with pytest.raises(httpx.ReadTimeout):
            read(server, 0.0, timeout_seconds=TRY)
        over.set()
