"""A failing predicate or hook of the user does not change the outcome of the call."""

import contextlib
import logging

import pytest

from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from tests.patterns.clocks import Clock


class TooLong(Exception):
    code = "context_length_exceeded"


class Answer:
    status_code = 503


def broken(_):
    raise KeyError("of the question")


def fails():
    raise ConnectionError("of the call")


@pytest.mark.parametrize("given", [{"retry_on": broken}, {"never": broken}])
def test_a_question_about_an_error_that_fails_keeps_the_error(given, caplog):
    with pytest.raises(ConnectionError, match="of the call"):
        Retry("a->b", sleep=lambda _: None, **given)(fails)()
    assert "decides what to retry failed" in caplog.text


def test_a_question_about_a_result_that_fails_keeps_the_result(caplog):
    assert Retry("a->b", retry_result=broken)(lambda: "given")() == "given"
    assert "raised an error instead of deciding whether to retry" in caplog.text


def test_a_question_of_a_fallback_that_fails_keeps_the_error(caplog):
    with pytest.raises(ConnectionError, match="of the call"):
        Fallback("a->b", default="a stand-in", on=broken)(fails)()
    assert "raised an error instead of deciding whether to fall back" in caplog.text


def test_failing_log_handler_raises_nothing():
    class Full(logging.Handler):
        def emit(self, record):
            raise OSError("disk full")

    log, handler = logging.getLogger("switchgear"), Full()
    log.addHandler(handler)
    try:
        assert Retry("a->b", retry_result=broken)(lambda: "given")() == "given"
    finally:
        log.removeHandler(handler)


@pytest.mark.parametrize("of_http", [False, True])
def test_error_after_truncation_is_retried_with_a_pause_and_without_truncation(of_http):
    waits, sizes = [], []
    retry = Retry(
        "a->b",
        RetryParameters(attempts=4, base_seconds=1),
        retry_result=None if of_http else (lambda result: result == "bad"),
        truncate=lambda args, kwargs: ((args[0][: len(args[0]) // 2],), kwargs),
        rng=lambda: 0.5,
    )
    round_, text = retry.begin(), "x" * 16
    for outcome in (TooLong(), Answer(), Answer()) if of_http else (TooLong(), "bad", "bad"):
        if isinstance(outcome, Exception):
            waits.append(round_.after_error(outcome))
        elif of_http:
            waits.append(round_.after_response(outcome))
        else:
            waits.append(round_.after_result(outcome))
        if round_.truncates:
            text = text[: len(text) // 2]
        sizes.append(len(text))

    assert waits == [0.0, 1.0, 2.0]
    assert sizes == [8, 8, 8]


def test_an_error_object_that_is_raised_again_and_again_has_one_note_of_ours():
    clock, error = Clock(), ConnectionError()
    error.add_note("of somebody else")

    def call():
        clock.goes(0.1)
        raise error

    retry = Retry("a->b", clock=clock, sleep=clock.goes)
    for _ in range(5):
        with contextlib.suppress(ConnectionError):
            retry(call)()

    assert error.__notes__[0] == "of somebody else"
    assert [each.split(" in ")[0] for each in error.__notes__[1:]] == ["switchgear: 3 attempts"]
