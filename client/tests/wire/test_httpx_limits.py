"""Timeouts, deadlines, breakers and bulkheads of the transports, against a real server."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from switchgear.adapters.http_requests import make_timeouts
from switchgear.adapters.httpx import AsyncTransport, Patterns, Transport
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline, DeadlineExceeded
from switchgear.patterns.parameters import (
    BreakerParameters,
    BulkheadParameters,
    HttpTimeouts,
    RetryParameters,
)
from switchgear.patterns.retry import Retry
from switchgear.policies.policy import Policy
from switchgear.refusals import BulkheadFull, CircuitOpen
from tests.wire.http_server import Asked, Said, in_turn, serving

LONG = 20.0
"""A hung server holds for so long at most."""
LARGE = Said(body=b"x" * 100_000)


def client_of(**parts):
    return httpx.Client(transport=Transport(Patterns(**parts), httpx.HTTPTransport(verify=False)))


def aclient_of(**parts):
    inner = httpx.AsyncHTTPTransport(verify=False)
    return httpx.AsyncClient(transport=AsyncTransport(Patterns(**parts), inner))


def ask(path, server, **parts):
    with client_of(**parts) as client:
        return client.get(server.url + path)


def aask(path, server, **parts):
    async def main():
        async with aclient_of(**parts) as client:
            return await client.get(server.url + path)

    return asyncio.run(main())


both = pytest.mark.parametrize("ask_it", [ask, aask])


@pytest.fixture
def hung():
    """A server that does not respond, until the test is over; but `/drip` it does, bit by bit."""
    over = threading.Event()

    def drip():
        while not over.wait(0.05):
            yield b"."

    def answer(asked: Asked) -> Said:
        if asked.path == "/drip":
            return Said(bits=drip())
        over.wait(LONG)
        return Said()

    with serving(answer) as server:
        yield server
        over.set()


@both
@pytest.mark.parametrize("path", ["/hung/deep", "/drip"])
def test_a_route_has_its_own_time_also_for_the_body(ask_it, hung, path):
    began = time.monotonic()
    with pytest.raises(httpx.ReadTimeout):
        ask_it(path, hung, routes={"/hung/**": 0.3, "/drip": 0.3}, timeout_seconds=LONG)
    assert 0.25 <= time.monotonic() - began < LONG / 2


@both
def test_a_deadline_ends_attempts_and_says_so(ask_it, hung):
    retry = Retry("backend", RetryParameters(attempts=3, base_seconds=0.0))
    with pytest.raises(DeadlineExceeded) as late:
        ask_it("/", hung, deadline=Deadline(0.5), retry=retry, timeout_seconds=0.3)
    assert (late.value.attempts, late.value.caused_by_retrying) == (2, True)
    assert len(hung.asked) == 2
    given = [int(each.headers["x-request-timeout-ms"]) for each in hung.asked]
    assert 0 < given[1] <= 200 < given[0] <= 300


@both
def test_an_outer_deadline_holds_for_what_the_client_asks(ask_it, hung):
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded), Deadline(0.3):
        ask_it("/", hung)
    assert time.monotonic() - began < LONG / 2


def test_nothing_is_sent_when_no_time_is_left():
    breaker = Breaker("backend")
    with serving(in_turn(Said())) as server, client_of(breaker=breaker) as client:
        with Deadline(0.05):
            time.sleep(0.1)
            with pytest.raises(DeadlineExceeded):
                client.get(server.url)
        assert server.asked == []
    assert breaker.counters.counted()["timeout"] == 0


def test_each_part_has_its_time_and_none_more_than_is_left():
    http = HttpTimeouts(connect=1, read=2, write=3, pool=4)
    plain = httpx.Client().build_request("GET", "http://a/")
    own = httpx.Client(timeout=httpx.Timeout(9, read=None)).build_request("GET", "http://a/")

    assert make_timeouts(plain, http) == {"connect": 1, "read": 2, "write": 3, "pool": 4}
    assert make_timeouts(own, http) == {"connect": 9, "read": None, "write": 9, "pool": 9}
    assert make_timeouts(plain, None) == {"connect": 5, "read": 5, "write": 5, "pool": 5}
    with Deadline(2.5):
        found = make_timeouts(plain, http)
    assert (found["connect"], found["read"]) == (1, 2)
    assert 2 < found["pool"] <= found["write"] <= 2.5


@both
@pytest.mark.parametrize("status", [500, 503, 408, 429])
def test_a_failing_status_opens_the_breaker_which_then_sends_nothing(ask_it, status):
    breaker = Breaker("backend", BreakerParameters(failure_count=2))
    with serving(in_turn(Said(status))) as server:
        assert [ask_it("/", server, breaker=breaker).status_code for _ in range(2)] == [status] * 2
        with pytest.raises(CircuitOpen) as refused:
            ask_it("/", server, breaker=breaker)
    assert len(server.asked) == 2
    assert f"HTTP {status}" in refused.value.last_failure


@both
def test_other_statuses_are_no_failures(ask_it):
    breaker = Breaker("backend", BreakerParameters(failure_count=1))
    with serving(in_turn(Said(404))) as server:
        ask_it("/", server, breaker=breaker)
    assert breaker.state == "closed"
    assert breaker.counters.counted()["success"] == 1


@both
def test_a_breaker_counts_each_attempt_and_a_timeout_as_such(ask_it, hung):
    breaker = Breaker("backend")
    retry = Retry("backend", RetryParameters(attempts=2, base_seconds=0.0))
    with pytest.raises(httpx.ReadTimeout):
        ask_it("/", hung, breaker=breaker, retry=retry, timeout_seconds=0.2)
    assert breaker.counters.counted()["timeout"] == 2


@both
def test_a_deadline_that_cuts_an_answer_off_counts_as_a_timeout(ask_it, hung):
    breaker = Breaker("backend")
    with pytest.raises(DeadlineExceeded):
        ask_it("/", hung, breaker=breaker, deadline=Deadline(0.2))
    assert breaker.counters.counted()["timeout"] == 1


def at_once(url, times, **parts):
    """Send so many requests at once, each in a thread."""
    with client_of(**parts) as client:
        with ThreadPoolExecutor(times) as pool:
            answers = [pool.submit(client.get, url) for _ in range(times)]
        return [each.exception() for each in answers]


def aat_once(url, times, **parts):
    async def main():
        async with aclient_of(**parts) as client:
            requests = [client.get(url) for _ in range(times)]
            answers = await asyncio.gather(*requests, return_exceptions=True)
        return [each if isinstance(each, Exception) else None for each in answers]

    return asyncio.run(main())


def answer_after(seconds):
    def answer(asked: Asked) -> Said:
        threading.Event().wait(seconds)
        return Said()

    return answer


@pytest.mark.parametrize("send", [at_once, aat_once])
def test_requests_that_waited_for_a_place_are_not_slow(send):
    parameters = BreakerParameters(minimum_calls=4, slow_call_seconds=0.15, slow_call_rate=0.5)
    breaker = Breaker("backend", parameters)
    bulkhead = Bulkhead("backend", BulkheadParameters(limit=1, queue=20, queue_seconds=10))

    with serving(answer_after(0.04)) as server:
        errors = send(server.url, 8, breaker=breaker, bulkhead=bulkhead)

    assert errors == [None] * 8
    assert breaker.counters.counted()["slow"] == 0
    assert breaker.state == "closed"


@pytest.mark.parametrize("send", [at_once, aat_once])
def test_requests_that_spent_their_deadline_in_the_queue_are_no_timeouts(send):
    breaker = Breaker("backend")
    bulkhead = Bulkhead("backend", BulkheadParameters(limit=1, queue=20, queue_seconds=10))
    parts = {"breaker": breaker, "bulkhead": bulkhead, "deadline": Deadline(0.7)}

    with serving(answer_after(0.4)) as server:
        errors = send(server.url, 2, **parts)

    assert sorted(type(each) for each in errors if each) == [DeadlineExceeded]
    counted = breaker.counters.counted()
    assert (counted["success"], counted["timeout"], counted["failure"]) == (1, 0, 0)


def test_a_place_is_held_until_the_answer_is_closed():
    bulkhead = Bulkhead("backend", BulkheadParameters(limit=1))
    with serving(in_turn(LARGE)) as server, client_of(bulkhead=bulkhead) as client:
        with client.stream("GET", server.url):
            assert bulkhead.look().in_flight == 1
            with pytest.raises(BulkheadFull):
                client.get(server.url)
        assert client.get(server.url).status_code == 200
    assert bulkhead.look().in_flight == 0


def test_a_place_is_held_until_the_answer_is_closed_in_coroutines():
    bulkhead = Bulkhead("backend", BulkheadParameters(limit=1))

    async def main(url):
        async with aclient_of(bulkhead=bulkhead) as client:
            async with client.stream("GET", url):
                assert bulkhead.look().in_flight == 1
                with pytest.raises(BulkheadFull):
                    await client.get(url)
            return await client.get(url)

    with serving(in_turn(LARGE)) as server:
        assert asyncio.run(main(server.url)).status_code == 200
    assert bulkhead.look().in_flight == 0


@both
def test_a_try_that_failed_gives_its_place_back(ask_it, hung):
    bulkhead = Bulkhead("backend", BulkheadParameters(limit=1))
    with pytest.raises(httpx.ReadTimeout):
        ask_it("/", hung, bulkhead=bulkhead, timeout_seconds=0.2)
    assert bulkhead.look().in_flight == 0


def test_a_policy_is_what_a_transport_puts_around():
    policy = Policy(
        "core->oracle",
        retry=RetryParameters(base_seconds=0.0),
        bulkhead="critical",
        timeout_seconds=LONG,
        deadline_seconds=LONG,
    )
    transport = Transport(policy, httpx.HTTPTransport(verify=False))
    with serving(in_turn(Said(503), Said())) as server, httpx.Client(transport=transport) as client:
        assert client.get(server.url).status_code == 200

    counted = policy.counters.counted()
    assert (counted["success"], counted["failure"], counted["retry"]) == (1, 1, 1)
    assert 0 < int(server.asked[0].headers["x-request-timeout-ms"]) <= LONG * 1000
