"""The journal never raises, and nobody else's text looks like a line of it."""

import logging
from contextlib import contextmanager

import pytest

from switchgear import journal
from switchgear.failures.error_labels import describe_error
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock


class Failing(logging.Handler):
    def emit(self, record):
        raise RuntimeError("the handler's own")


@contextmanager
def failing_log():
    handler, level = Failing(), journal.log.level
    journal.log.addHandler(handler)
    journal.log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        journal.log.removeHandler(handler)
        journal.log.setLevel(level)


class Unsayable:
    def __str__(self):
        raise ValueError("not to be said")


def test_it_raises_nothing_when_the_log_a_hook_or_a_value_fails():
    def hook(entry):
        raise KeyError(entry.name)

    remove = journal.add_hook(hook)
    try:
        with failing_log():
            journal.record("circuit_breaker_opened", "a->b", cause="x")
        journal.record("circuit_breaker_opened", "a->b", cause=Unsayable())
    finally:
        remove()


def test_a_handler_that_fails_loses_no_probe():
    clock = Clock()
    breaker = Breaker(
        "d",
        BreakerParameters(failure_count=1, open_seconds=1, open_jitter=0, half_open_calls=1),
        clock=clock,
    )

    @breaker
    def call(error=None):
        if error:
            raise error

    def watcher(transition):
        raise ValueError(transition.after)

    breaker.watch(watcher)
    with failing_log():
        with pytest.raises(OSError, match="the call's own"):
            call(OSError("the call's own"))
        with pytest.raises(CircuitOpen):
            call()
        clock.goes(2)
        call()

    assert breaker.state == "closed"


FORGED = "x\nERROR:switchgear:circuit_breaker_closed \x1b[31m\u2028\u202e\ud800 é"
ESCAPED = r"x\nERROR:switchgear:circuit_breaker_closed \x1b[31m\u2028\u202e\ud800 é"


def test_what_others_say_stays_on_its_line(caplog):
    with caplog.at_level(logging.WARNING, "switchgear"):
        journal.record("circuit_breaker_opened", "a->b", cause=FORGED)
    assert caplog.messages == [f"circuit_breaker_opened about=a->b cause={ESCAPED}"]


def test_what_is_kept_of_an_error_is_on_one_line_and_short():
    assert describe_error(OSError(FORGED)) == f"OSError: {ESCAPED}"
    assert len(describe_error(OSError("\n" * 500))) == 200

    breaker = Breaker("d", BreakerParameters(failure_count=1))
    breaker.fail(breaker.admit(), OSError(FORGED))
    with pytest.raises(CircuitOpen) as raised:
        breaker.admit()
    assert str(raised.value).isprintable()
