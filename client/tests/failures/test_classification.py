"""The four classes of failures and their responses."""

import ssl

import httpx
import pytest

from switchgear import journal
from switchgear.failures.classification import Catastrophic, FailureClass, classify, register
from switchgear.failures.responses import RESPONSES, respond
from switchgear.patterns.deadline import Deadline, DeadlineExceeded
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.refusals import BulkheadFull, CircuitOpen

TRANSIENT, PERSISTENT, CASCADING, CATASTROPHIC = FailureClass


def status(number):
    request = httpx.Request("GET", "http://a/")
    answer = httpx.Response(number, request=request)
    return httpx.HTTPStatusError("bad", request=request, response=answer)


class Coded(Exception):
    def __init__(self, code):
        self.code = code


class Leak(Catastrophic): ...


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), TRANSIENT),
        (ConnectionResetError(), TRANSIENT),
        (status(429), TRANSIENT),
        (status(503), TRANSIENT),
        (Coded("model_overloaded"), TRANSIENT),
        (DeadlineExceeded(1.0), TRANSIENT),
        (status(401), PERSISTENT),
        (status(404), PERSISTENT),
        (Coded("invalid_api_key"), PERSISTENT),
        (KeyError("field"), PERSISTENT),
        (caused(httpx.ConnectError("no"), ssl.SSLCertVerificationError()), PERSISTENT),
        (CircuitOpen("a->b"), CASCADING),
        (BulkheadFull("b", "queue is full"), CASCADING),
        (DeadlineExceeded(1.0, 3, True), CASCADING),
        (Leak(), CATASTROPHIC),
        (caused(ConnectionError(), Leak()), CATASTROPHIC),
    ],
)
def test_a_failure_is_of_its_class(error, kind):
    assert classify(error) is kind


def test_an_exhausted_quota_stays_although_its_status_says_otherwise():
    error = status(429)
    error.code = "insufficient_quota"
    assert classify(error) is PERSISTENT


def test_an_error_that_a_budget_gave_up_is_cascading():
    retry = Retry(parameters=RetryParameters(attempts=3), budget=RetryBudget(0, 0))
    with pytest.raises(ConnectionError) as failed:
        retry(_fail)()
    assert classify(failed.value) is CASCADING


def test_an_error_that_a_deadline_gave_up_is_cascading():
    with pytest.raises(ConnectionError) as failed, Deadline(5):
        Retry(parameters=RetryParameters(base_seconds=60, cap_seconds=60), rng=lambda: 1.0)(_fail)()
    assert classify(failed.value) is CASCADING


def _fail():
    raise ConnectionError


def test_rules_of_the_user_come_first_and_one_that_fails_is_left_out():
    rules = (lambda error: 1 / 0, lambda error: None, lambda error: CATASTROPHIC)
    assert classify(ValueError(), rules) is CATASTROPHIC


def test_classes_can_be_declared_catastrophic():
    class Theirs(Exception): ...

    assert classify(Theirs()) is PERSISTENT
    register(Theirs)
    assert classify(Theirs()) is CATASTROPHIC


def test_catastrophic_failure_is_neither_retried_nor_answered():
    response = RESPONSES[CATASTROPHIC]
    assert (response.retry, response.fallback, response.alert) == (False, False, "now")
    assert "switchgear engage" in response.advice
    calls = []

    def leaking():
        calls.append(1)
        raise Leak

    with pytest.raises(Leak):
        Retry(retry_on=(Exception,))(leaking)()
    assert len(calls) == 1


def test_only_transient_failures_are_retried():
    assert [RESPONSES[kind].retry for kind in FailureClass] == [True, False, False, False]
    assert set(RESPONSES) == set(FailureClass)


def test_persistent_failure_is_noted_once_and_catastrophe_each_time():
    entries = []
    remove = journal.add_hook(entries.append)
    try:
        for _ in range(3):
            assert not respond(status(401), "told->once").counts
            respond(Leak("secret text"), "told->once")
            respond(TimeoutError(), "told->once")
    finally:
        remove()

    names = [entry.name for entry in entries]
    assert names.count("failure_persistent") == 1
    assert names.count("failure_catastrophic") == 3
    assert len(names) == 4
    assert not any("secret text" in str(entry.fields) for entry in entries)
