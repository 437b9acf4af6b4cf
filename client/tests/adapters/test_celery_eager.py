"""Tasks within policies, run at once where they are sent: what ends them, and what counts."""

from typing import Any

import pytest
from celery import Celery
from celery.exceptions import MaxRetriesExceededError, SoftTimeLimitExceeded

from switchgear.adapters.celery import RETRIES_HEADER, PolicyTask
from switchgear.journal import Entry, add_hook
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import BreakerParameters, RetryParameters
from switchgear.patterns.retried_calls import find_active
from switchgear.patterns.retry import Retry
from switchgear.policies.policy import Policy
from switchgear.refusals import CircuitOpen

RETRY = RetryParameters(attempts=3, base_seconds=0.001)


@pytest.fixture
def app() -> Celery:
    celery_app = Celery(
        "eager", broker="memory://", backend="cache+memory://", set_as_current=False
    )
    celery_app.conf.task_always_eager = True
    return celery_app


def test_what_is_refused_fails_as_it_can_not_come_later(app: Celery) -> None:
    policy = Policy("worker->mail")
    policy.breaker.force("forced_open")
    runs = []

    @app.task(base=PolicyTask, policy=policy, name="mail")
    def mail() -> None:
        runs.append(1)

    result = mail.delay()

    assert (result.state, runs) == ("FAILURE", [])
    assert isinstance(result.result, CircuitOpen)


def test_retries_that_a_body_asks_for_end_as_those_of_celery(app: Celery) -> None:
    runs = []

    @app.task(base=PolicyTask, policy=Policy("worker->own"), bind=True, name="unsaid")
    def unsaid(self: PolicyTask) -> None:
        runs.append(1)
        assert len(runs) < 50
        raise self.retry(countdown=0)

    unsaid.delay()

    assert len(runs) == 4


def test_retries_of_a_policy_count_for_no_max_retries(app: Celery) -> None:
    """Two of the policy's are beside the one that the body may ask for."""
    policy = Policy("worker->both", retry=RetryParameters(attempts=3, base_seconds=0))
    fails = iter((True, True, False, False))
    counted = []

    @app.task(base=PolicyTask, policy=policy, bind=True, max_retries=1, name="both")
    def both(self: PolicyTask) -> None:
        counted.append((self.request.headers or {}).get(RETRIES_HEADER, 0))
        if next(fails):
            raise ConnectionError("away")
        raise self.retry(countdown=0, headers={"own": "header"})

    assert isinstance(both.delay().result, MaxRetriesExceededError)
    assert counted == [0, 1, 2, 2]


def test_as_many_retries_as_a_policy_has_are_made_whatever_max_retries_says(app: Celery) -> None:
    policy = Policy("worker->many", retry=RetryParameters(attempts=6, base_seconds=0))
    runs = []

    @app.task(base=PolicyTask, policy=policy, max_retries=0, name="many")
    def many() -> None:
        runs.append(1)
        raise ConnectionError("away")

    assert isinstance(many.delay().result, ConnectionError)
    assert len(runs) == 6


def test_autoretry_has_its_own_count_after_the_retries_of_a_policy(app: Celery) -> None:
    policy = Policy("worker->auto", retry=RetryParameters(attempts=3, base_seconds=0))
    fails = iter((ConnectionError, ConnectionError, *[KeyError] * 50))
    runs = []

    @app.task(
        base=PolicyTask,
        policy=policy,
        autoretry_for=(KeyError,),
        retry_kwargs={"max_retries": 2, "countdown": 0},
        name="auto",
    )
    def auto() -> None:
        runs.append(1)
        raise next(fails)("away")

    assert isinstance(auto.delay().result, KeyError)
    assert len(runs) == 5


def test_task_that_calls_itself_calls_a_function(app: Celery) -> None:
    policy, calls = Policy("worker->self", retry=RETRY), []

    @app.task(base=PolicyTask, policy=policy, bind=True, name="selfish")
    def selfish(self: PolicyTask, depth: int = 0) -> str:
        calls.append((depth, self.request.called_directly, self.request.args))
        if depth:
            raise ConnectionError("away")
        try:
            self(1)
        except ConnectionError as error:
            return f"caught {error}"
        return "nothing"

    assert selfish.delay().get() == "caught away"
    assert calls == [(0, False, ()), (1, True, (1,))]


def test_coroutine_function_is_no_task(app: Celery) -> None:
    @app.task(base=PolicyTask, policy=Policy("worker->coroutine"), name="coroutine")
    async def coroutine() -> None: ...

    with pytest.raises(TypeError, match="coroutine function"):
        coroutine()


def test_soft_time_limit_is_a_timeout_that_nothing_answers_for(app: Celery) -> None:
    policy = Policy(
        "worker->slow",
        fallback=Fallback("worker->slow", default="something"),
        retry=RETRY,
        breaker=BreakerParameters(failure_count=1),
    )
    runs: list[int] = []
    entries: list[Entry] = []
    end = add_hook(entries.append)

    @app.task(base=PolicyTask, policy=policy, name="slow")
    def slow() -> None:
        runs.append(1)
        raise SoftTimeLimitExceeded

    result = slow.delay()
    end()

    assert isinstance(result.result, SoftTimeLimitExceeded)
    assert len(runs) == 1
    assert policy.counters.counted()["timeout"] == 1
    assert [entry.name for entry in entries] == ["circuit_breaker_opened"]


@pytest.mark.parametrize("pattern", [Fallback("x", default="something"), Retry("x", RETRY)])
def test_it_goes_through_the_patterns_of_a_body_too(pattern: Any) -> None:
    runs, breaker = [], Breaker("x")

    @pattern
    @breaker
    def body() -> None:
        runs.append(find_active())
        raise SoftTimeLimitExceeded

    with pytest.raises(SoftTimeLimitExceeded):
        body()
    assert len(runs) == 1
    assert breaker.counters.counted()["timeout"] == 1


@pytest.mark.parametrize("pattern", [Fallback("x", default="something"), Retry("x", RETRY)])
def test_so_it_does_if_an_sdk_has_wrapped_it_up(pattern: Any) -> None:
    runs = []

    @pattern
    def body() -> None:
        runs.append(find_active())
        raise ConnectionError("connection error") from SoftTimeLimitExceeded()

    with pytest.raises(ConnectionError):
        body()
    assert len(runs) == 1
