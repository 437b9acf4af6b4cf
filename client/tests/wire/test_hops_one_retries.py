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
from tests.wire.answering import Asked, Said, Server, serving

QUICK = RetryParameters(attempts=3, base_seconds=0.001)


def client_of() -> httpx.Client:
    inner = httpx.HTTPTransport(verify=False)  # To read certificates takes long.
    return httpx.Client(transport=Transport(Patterns(retry=Retry("next", QUICK)), inner))


@contextmanager
def hop(target: str, *, listens: bool) -> Iterator[Server]:
    """A service that asks `target`, with a retry of its own."""
    with client_of() as client:

        def answer(asked: Asked) -> Said:
            with incoming(asked.headers if listens else {}):
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
        assert [each.headers["x-retry-attempt"] for each in backend.asked] == ["0", "1", "2"]


def test_a_hop_tries_again_when_nobody_before_it_does():
    with (
        serving(lambda asked: Said(503)) as backend,
        hop(backend.url, listens=True) as middle,
        httpx.Client() as first,
    ):
        first.get(middle.url)

    assert len(backend.asked) == 3


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
