"""Requests that the transports repeat, as seen by a real server."""

import asyncio
from email.utils import formatdate
from time import time

import httpx
import pytest

from switchgear.adapters.httpx import AsyncTransport, Patterns, Transport
from switchgear.patterns.counters import Counters
from switchgear.patterns.idempotency import idempotency_key_of
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.retry_budget import RetryBudget
from tests.wire.http_server import Said, in_turn, serving

QUICK = RetryParameters(attempts=3, base_seconds=0.0)
BUSY, FINE = Said(503), Said(200)


def retry_of(**given):
    """A retry that records its waits."""
    waits = []
    given = {"parameters": QUICK, "rng": lambda: 0.0, "sleep": waits.append, **given}
    return Retry("backend", **given), waits


def ask(retry, server, method="GET", **request):
    with httpx.Client(
        transport=Transport(Patterns(retry=retry), httpx.HTTPTransport(verify=False))
    ) as client:
        return client.request(method, server.url, **request)


def aask(retry, server, method="GET", **request):
    async def main():
        transport = AsyncTransport(Patterns(retry=retry), httpx.AsyncHTTPTransport(verify=False))
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.request(method, server.url, **request)

    return asyncio.run(main())


both = pytest.mark.parametrize("ask_it", [ask, aask])


@both
def test_a_status_that_passes_is_tried_again_and_the_answer_given(ask_it):
    counters = Counters()
    retry, waits = retry_of(counters=counters)
    with serving(in_turn(BUSY, Said(429), FINE)) as server:
        answer = ask_it(retry, server)

    assert (answer.status_code, answer.text) == (200, "ok")
    assert len(server.asked) == 3
    assert len(waits) == counters.counted()["retry"] == 2


@both
def test_the_last_answer_is_given_as_it_is(ask_it):
    retry, _ = retry_of()
    with serving(in_turn(BUSY, BUSY, Said(503, body=b"still busy"))) as server:
        answer = ask_it(retry, server)

    assert (answer.status_code, answer.text, len(server.asked)) == (503, "still busy", 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 501])
def test_a_status_that_stays_is_not_tried_again(status):
    retry, _ = retry_of()
    with serving(in_turn(Said(status), FINE)) as server:
        assert ask(retry, server).status_code == status
    assert len(server.asked) == 1


@both
def test_the_connection_is_used_again(ask_it):
    retry, _ = retry_of()
    with serving(in_turn(BUSY, BUSY, FINE)) as server:
        ask_it(retry, server)
    assert len({each.connection for each in server.asked}) < len(server.asked) == 3


@both
def test_a_long_answer_that_nobody_wants_is_not_read(ask_it):
    retry, _ = retry_of()
    with serving(in_turn(Said(503, body=b"x" * 20_000_000), FINE)) as server:
        assert ask_it(retry, server).status_code == 200
    assert len({each.connection for each in server.asked}) == 2


@both
def test_seconds_of_retry_after_are_waited(ask_it):
    retry, waits = retry_of(rng=lambda: 1.0)
    with serving(in_turn(Said(429, {"Retry-After": "7"}), FINE)) as server:
        assert ask_it(retry, server).status_code == 200
    assert waits == [pytest.approx(7.7)]


def test_a_date_of_retry_after_is_by_the_servers_clock():
    headers = {"Date": "Sun, 22 Nov 2009 02:00:00 GMT"}
    later = {**headers, "Retry-After": "Sun, 22 Nov 2009 02:00:12 GMT"}
    retry, waits = retry_of()
    with serving(in_turn(Said(503, later), FINE)) as server:
        ask(retry, server)
    assert waits == [12.0]


def test_a_date_of_retry_after_is_waited_for():
    retry, waits = retry_of()
    later = formatdate(time() + 20, usegmt=True)
    with serving(in_turn(Said(503, {"Retry-After": later}), FINE)) as server:
        ask(retry, server)
    assert waits == [pytest.approx(20, abs=2)]


@both
def test_a_retry_after_beyond_30_seconds_is_not_waited_for(ask_it):
    retry, waits = retry_of()
    with serving(in_turn(Said(429, {"Retry-After": "31"}), FINE)) as server:
        answer = ask_it(retry, server)
    assert (answer.status_code, waits, len(server.asked)) == (429, [], 1)


@both
def test_a_budget_ends_it_for_all(ask_it):
    budget = RetryBudget(rate=0.2, per_second=0.0)
    retry, _ = retry_of(budget=budget)
    with serving(in_turn(BUSY)) as server:
        for _ in range(20):
            ask_it(retry, server)
    assert len(server.asked) == 24


@both
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_is_not_to_be_repeated_is_sent_once_but_with_a_key_of_the_callers(ask_it, method):
    retry, _ = retry_of()
    key = {"Idempotency-Key": "order-17"}
    with serving(in_turn(BUSY)) as server:
        ask_it(retry, server, method, content=b"a")
        assert len(server.asked) == 1
        ask_it(retry, server, method, content=b"a", headers=key)
        with idempotency_key_of("order-18"):
            ask_it(retry, server, method, content=b"a")

    keys = [each.headers["idempotency-key"] for each in server.asked[1:]]
    assert keys == ["order-17"] * 3 + ["order-18"] * 3
    assert {each.body for each in server.asked} == {b"a"}


def test_a_body_that_is_gone_is_not_sent_again():
    retry, _ = retry_of()
    with serving(in_turn(BUSY)) as server:
        ask(retry, server, "PUT", content=iter([b"a", b"b"]), headers={"Content-Length": "2"})
    assert [each.body for each in server.asked] == [b"ab"]


@both
def test_a_connection_that_was_refused_is_tried_again_for_every_method(ask_it):
    retry, waits = retry_of()
    with serving(in_turn(FINE)) as server:
        pass
    with pytest.raises(httpx.ConnectError) as failed:
        ask_it(retry, server, "POST", content=b"a")
    assert len(waits) == 2
    assert "3 attempts" in failed.value.__notes__[0]


@both
def test_all_attempts_around_a_post_have_one_key_and_the_next_post_another(ask_it):
    retry = Retry("orders", QUICK, retry_result=lambda answer: answer.status_code == 503)

    @retry
    def order(body):
        return ask_it(None, server, "POST", content=body)

    with serving(in_turn(BUSY, FINE)) as server:
        order(b"a")
        order(b"a")

    keys = [each.headers["idempotency-key"] for each in server.asked]
    assert len(keys) == 3
    assert keys[0] == keys[1] != keys[2]


def test_two_equal_posts_of_one_attempt_stay_two():
    retry = Retry("orders", QUICK, retry_result=lambda answer: answer.status_code == 503)

    @retry
    def order_twice():
        ask(None, server, "POST", content=b"a")
        return ask(None, server, "POST", content=b"a")

    with serving(in_turn(FINE, BUSY, FINE)) as server:
        order_twice()

    first, second, third, fourth = [each.headers["idempotency-key"] for each in server.asked]
    assert first != second
    assert (first, second) == (third, fourth)
