"""Calls between the demo's services pass on the time left and the retry headers."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from demo.faults import Fault, Faults
from demo.http_calls import TooLate, Unreachable, call
from demo.http_service import Body, FaultyService, ServiceResponse, run_service
from switchgear import Deadline, Retry, RetryParameters
from switchgear.patterns import deadline
from switchgear.patterns.propagation import incoming, outgoing


@contextmanager
def telling() -> Iterator[tuple[int, list[tuple[float | None, str | None]]]]:
    """A service that keeps what it has heard with each call: seconds left, and the attempt."""
    calls: list[tuple[float | None, str | None]] = []

    def answer(_: Body) -> ServiceResponse:
        calls.append((deadline.left(), outgoing().get("X-Retry-Attempt")))
        return ServiceResponse(503 if len(calls) < 3 else 200, {})

    with run_service(FaultyService({("POST", "/answer"): answer}, Faults())) as port:
        yield port, calls


def test_a_call_without_a_limit_brings_none_along() -> None:
    with telling() as (port, calls):
        call(port, "/answer", {}, seconds=20)

    assert calls == [(None, None)]


def test_time_that_is_left_and_each_attempt_arrive() -> None:
    retry = Retry("core->oracle", RetryParameters(base_seconds=0.0))
    with telling() as (port, calls), Deadline(60):
        for attempt in retry:
            with attempt:
                status, _ = call(port, "/answer", {}, seconds=20)
                if status == 503:
                    raise Unreachable("not yet")

    # The last one says so by another header.
    assert [attempt for _, attempt in calls] == ["0", "1", None]
    assert all(left is not None and 30 < left <= 60 for left, _ in calls)


def test_a_call_takes_no_longer_than_what_is_left() -> None:
    faults = Faults()
    faults.inject(Fault(delay_ms=5_000))

    def slow(_: Body) -> ServiceResponse:
        faults.strike()
        return ServiceResponse(200, {})

    with (
        run_service(FaultyService({("POST", "/answer"): slow}, faults)) as port,
        pytest.raises(TooLate, match=r"within 0\.[12] s"),
        incoming({"X-Request-Timeout-Ms": "200"}),
    ):
        call(port, "/answer", {}, seconds=20)


def test_what_arrives_too_late_is_not_begun() -> None:
    with telling() as (port, calls):
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/answer", "{}", {"X-Request-Timeout-Ms": "0"})
        status = connection.getresponse().status

    assert (status, calls) == (504, [])
