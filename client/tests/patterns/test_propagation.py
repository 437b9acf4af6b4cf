"""The headers of outgoing requests, and the accepted ones of incoming requests."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.patterns.deadline import Deadline, left
from switchgear.patterns.idempotency import idempotency_key, idempotency_key_of, request_key
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.propagation import MAX_TIMEOUT_SECONDS, incoming, outgoing
from switchgear.patterns.retry import Retry
from switchgear.patterns.retry_budget import RetryBudget
from tests.patterns.clocks import Clock


def failing_retry():
    return Retry(sleep=lambda seconds: None)


def test_no_headers_without_limit_and_retry():
    assert outgoing() == {}


def test_remaining_time_is_sent_in_whole_milliseconds_rounded_down():
    clock = Clock()
    with Deadline(2, clock=clock):
        clock.goes(0.5004)
        assert outgoing() == {"X-Request-Timeout-Ms": "1499"}
        clock.goes(5)
        assert outgoing() == {"X-Request-Timeout-Ms": "0"}


def test_the_attempt_goes_along_from_the_first_one_on():
    headers = []
    for attempt in failing_retry():
        with attempt:
            headers.append(outgoing())
            if len(headers) < 3:
                raise ConnectionError
    last = {"X-Retry-Last-Attempt": "2"}
    assert headers == [{"X-Retry-Attempt": "0"}, {"X-Retry-Attempt": "1"}, last]
    assert outgoing() == {}


@pytest.mark.parametrize("header", ["X-Retry-Attempt", "X-Retry-Last-Attempt"])
def test_incoming_limits_are_propagated(header):
    clock = Clock()
    headers = {"X-Request-Timeout-Ms": "3000", header: "2"}
    with incoming(headers, clock=clock, trusts_attempt=True) as brought:
        clock.goes(1)
        assert outgoing() == {"X-Request-Timeout-Ms": "2000", header: "2"}
    assert outgoing() == {}
    assert brought.is_last is (header == "X-Retry-Last-Attempt")


def test_the_attempt_of_a_stranger_is_ignored_but_not_its_time():
    calls = []

    @failing_retry()
    def failing():
        calls.append(outgoing()["X-Retry-Attempt"] if len(calls) < 2 else None)
        raise ConnectionError

    with incoming({"X-Request-Timeout-Ms": "9000", "X-Retry-Attempt": "7"}) as brought:
        with pytest.raises(ConnectionError):
            failing()
        assert 8 < left() <= 9

    assert brought.attempt is None
    assert calls == ["0", "1", None]


@pytest.mark.parametrize("header", ["X-Retry-Attempt", "X-Retry-Last-Attempt"])
def test_failures_are_left_to_a_trusted_caller_that_retries_on_its_last_attempt_too(header):
    calls = []

    @failing_retry()
    def failing():
        calls.append(1)
        raise ConnectionError

    with incoming({header: "2"}, trusts_attempt=True), pytest.raises(ConnectionError) as failed:
        failing()

    assert len(calls) == 1
    assert "not retried here; the caller's retry retries" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    "outer",
    [
        {"retry_on": (LookupError,)},
        {"parameters": RetryParameters(retry_on=("timeout",))},
        {"budget": RetryBudget(0, 0)},
    ],
)
def test_an_attempt_that_would_not_be_repeated_does_not_go_along(outer):
    headers = []
    for attempt in Retry(sleep=lambda seconds: None, **outer):
        with attempt:
            headers.append(outgoing(ConnectionError()))
    assert headers == [{}]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-request-timeout-ms": "1500"}, 1.5),
        ({"X-Envoy-Expected-Rq-Timeout-Ms": "250"}, 0.25),
        ({"grpc-timeout": "2S"}, 2),
        ({"grpc-timeout": "3M"}, 180),
        ({"grpc-timeout": "1H"}, 3600),
        ({"grpc-timeout": "5m"}, 0.005),
        ({"grpc-timeout": "5u"}, 5e-6),
        ({"grpc-timeout": "5n"}, 5e-9),
        ({"grpc-timeout": "2S", "x-request-timeout-ms": "1500"}, 1.5),
        ([("X-Request-Timeout-Ms", "9"), ("X-Request-Timeout-Ms", "7")], 0.007),
        ({"x-request-timeout-ms": "999999999999"}, MAX_TIMEOUT_SECONDS),
        ({"x-request-timeout-ms": "-1"}, None),
        ({"x-request-timeout-ms": "1e3"}, None),
        ({"x-request-timeout-ms": "٣"}, None),
        ({"x-request-timeout-ms": "9" * 5000}, None),
        ({"grpc-timeout": "123456789S"}, None),
        ({"grpc-timeout": "S"}, None),
        ({"x-other": "5"}, None),
    ],
)
def test_time_is_read_or_left_aside(headers, seconds):
    assert incoming(headers).seconds == (None if seconds is None else pytest.approx(seconds))


@given(
    st.dictionaries(
        st.sampled_from(
            ["grpc-timeout", "X-Request-Timeout-Ms", "X-Retry-Attempt", "X-Retry-Last-Attempt"]
        ),
        st.text() | st.integers().map(str),
    )
)
def test_incoming_limits_are_bounded(headers):
    with incoming(headers, trusts_attempt=True) as brought:
        assert brought.seconds is None or 0 <= left() <= MAX_TIMEOUT_SECONDS
        assert brought.attempt is None or 0 <= brought.attempt <= 1000


def test_request_has_its_own_time_and_cleans_up():
    with Deadline(1000):
        with incoming({"x-request-timeout-ms": "9000"}) as brought, brought:
            assert 8 < left() <= 9
        with incoming({}):
            assert left() is None
            with Deadline(5):
                assert 4 < left() <= 5
            assert left() is None
        assert 999 < left() <= 1000


def test_retries_run_in_a_request_of_a_caller_that_does_not_retry():
    calls = []

    @failing_retry()
    def failing():
        calls.append(1)
        raise ConnectionError

    for attempt in failing_retry():
        with attempt, incoming({}), pytest.raises(ConnectionError):
            failing()
    assert len(calls) == 3


def test_a_key_is_one_for_all_attempts_and_another_for_the_next_call():
    keys = []

    @failing_retry()
    def call():
        keys.append(idempotency_key())
        if len(keys) % 2:
            raise ConnectionError

    call()
    call()
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert idempotency_key() is None


def test_a_given_key_is_everybodys_inside():
    with idempotency_key_of("order-17") as key:
        assert idempotency_key() == request_key(b"POST") == key == "order-17"
        with idempotency_key_of("order-18"):
            assert idempotency_key() == "order-18"
        assert idempotency_key() == "order-17"
    assert idempotency_key() is None


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "ключ", "x" * 256])
def test_invalid_idempotency_key_is_refused(key):
    with pytest.raises(ValueError, match="idempotency key"), idempotency_key_of(key):
        pass


def test_a_callers_attempt_has_no_key_of_ours():
    with incoming({"X-Retry-Attempt": "1"}, trusts_attempt=True):
        assert idempotency_key() is None
        assert request_key(b"POST") != request_key(b"POST")


def test_each_request_of_an_attempt_has_its_own_key_the_same_in_the_next():
    sent = []
    for attempt in failing_retry():
        with attempt:
            parts = [(b"POST", b"a"), (b"POST", b"a"), (b"POST", b"b"), (b"POSTa", b"")]
            sent.append([request_key(*each) for each in parts])
            if len(sent) < 2:
                raise ConnectionError
    assert len(set(sent[0])) == 4
    assert sent[0] == sent[1]


def test_tasks_of_one_attempt_share_its_key():
    async def main():
        async def one():
            return idempotency_key()

        @failing_retry()
        async def call():
            return await asyncio.gather(one(), one())

        return await call()

    first, second = asyncio.run(main())
    assert first == second
    assert first is not None


def test_requests_of_an_inner_retry_keep_their_keys_and_stay_apart_from_equal_ones():
    sent, inner_calls = [], []

    @Retry("inner", retry_on=(KeyError,), sleep=lambda seconds: None)
    def inner():
        inner_calls.append(1)
        sent.append(("inner", request_key(b"POST")))
        if len(inner_calls) % 2:
            raise KeyError

    @failing_retry()
    def outer():
        sent.append(("before", request_key(b"POST")))
        inner()
        sent.append(("after", request_key(b"POST")))
        if len(inner_calls) < 4:
            raise ConnectionError

    outer()

    assert len(sent) == 8
    assert len({key for _, key in sent}) == 3
    assert all(len({key for at, key in sent if at == place}) == 1 for place, _ in sent)
