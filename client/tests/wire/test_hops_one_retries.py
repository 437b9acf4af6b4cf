"""Three services in a row, each of which would try three times: only the first one does."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from switchgear.adapters.httpx import Patterns, Transport
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.propagation import incoming
from switchgear.patterns.retry import Retry
from tests.wire.http_server import Asked, Said, Server, in_turn, serving

ATTEMPT, LAST = "x-retry-attempt", "x-retry-last-attempt"
QUICK = RetryParameters(attempts=3, base_seconds=0.001)


def client_of() -> httpx.Client:
    inner = httpx.HTTPTransport(verify=False)  # To read certificates takes long.
    return httpx.Client(transport=Transport(Patterns(retry=Retry("next", QUICK)), inner))


@contextmanager
def hop(target: str, *, listens: bool) -> Iterator[Server]:
    """A service that asks `target`, with a retry of its own."""
    with client_of() as client:

        def answer(asked: Asked) -> Said:
            with incoming(asked.headers, trusts_attempt=listens):
                return Said(client.get(target).status_code)

        with serving(answer) as server:
            yield server


@pytest.mark.parametrize(("listens", "calls"), [(True, 3), (False, 27)])
def test_three_layers_of_three_attempts_make_three_calls_and_not_27(listens, calls):
    with (
        serving(lambda asked: Said(503)) as backend,
        hop(backend.url, listens=listens) as third,
        hop(third.url, listens=listens) as second,
        client_of() as first,
    ):
        answer = first.get(second.url)

    assert answer.status_code == 503
    assert len(backend.asked) == calls
    if listens:
        told = [(each.headers.get(ATTEMPT), each.headers.get(LAST)) for each in backend.asked]
        assert told == [("0", None), ("1", None), (None, "2")]


def test_a_hop_tries_again_when_nobody_before_it_does():
    with (
        serving(lambda asked: Said(503)) as backend,
        hop(backend.url, listens=True) as middle,
        httpx.Client() as first,
    ):
        first.get(middle.url)

    assert len(backend.asked) == 3


def test_a_hop_retries_what_the_one_before_it_sends_only_once():
    given = in_turn(Said(503), Said(200))
    with (
        serving(given) as backend,
        hop(backend.url, listens=True) as middle,
        client_of() as first,
    ):
        answer = first.post(middle.url, json={})

    assert answer.status_code == 200
    assert len(middle.asked) == 1
    assert len(backend.asked) == 2
    assert {ATTEMPT, LAST}.isdisjoint(middle.asked[0].headers)


def test_a_post_with_the_callers_key_says_that_it_is_repeated():
    with serving(in_turn(Said(503), Said(200))) as server, client_of() as first:
        first.post(server.url, json={}, headers={"Idempotency-Key": "order-17"})

    assert [each.headers.get(ATTEMPT) for each in server.asked] == ["0", "1"]


@pytest.mark.parametrize("outer", [Retry("job", retry_on=(KeyError,)), Retry("job", QUICK)])
def test_a_job_around_a_request_counts_if_it_would_repeat_the_request(outer):
    with serving(lambda asked: Said(503)) as server, client_of() as first:
        for attempt in outer:
            with attempt:
                first.post(server.url, json={})

    would = outer.retry_on is None
    assert [each.headers.get(ATTEMPT) for each in server.asked] == ["0" if would else None]


def test_the_attempt_of_an_incoming_request_does_not_go_on_with_its_headers():
    with serving(lambda asked: Said(200)) as server, client_of() as gateway:
        gateway.post(server.url, json={}, headers={"X-Retry-Attempt": "3"})

    assert {ATTEMPT, LAST}.isdisjoint(server.asked[0].headers)


def test_a_request_that_a_job_around_it_would_repeat_is_sent_once_an_attempt():
    job = Retry("job", QUICK, retry_on=(httpx.HTTPStatusError,))
    with (
        serving(lambda asked: Said(503)) as server,
        client_of() as first,
        pytest.raises(httpx.HTTPStatusError),
    ):
        job(lambda: first.get(server.url).raise_for_status())()

    assert len(server.asked) == 3


def test_a_request_that_a_job_around_it_would_not_repeat_is_retried_by_its_own():
    job = Retry("job", QUICK, retry_on=(KeyError,))
    with serving(in_turn(Said(503), Said(503), Said(200))) as server, client_of() as first:
        answer = job(lambda: first.get(server.url))()

    assert (answer.status_code, len(server.asked)) == (200, 3)


def test_a_redirected_request_says_its_attempt_once():
    def answer(asked: Asked) -> Said:
        return Said(307, {"Location": "/there"}) if asked.path == "/" else Said(200)

    with serving(answer) as server, client_of() as first:
        first.get(server.url, follow_redirects=True)

    assert [(each.path, each.headers.get(ATTEMPT)) for each in server.asked] == [
        ("/", "0"),
        ("/there", "0"),
    ]


def test_time_shrinks_from_hop_to_hop():
    with (
        serving(lambda asked: Said(200)) as backend,
        hop(backend.url, listens=True) as middle,
        client_of() as first,
        Deadline(20),
    ):
        first.get(middle.url)

    given = [int(each.asked[0].headers["x-request-timeout-ms"]) for each in (middle, backend)]
    assert 20_000 >= given[0] >= given[1] > 1000
