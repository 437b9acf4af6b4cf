"""Tasks of a test, in a worker of their own: what they do is kept in Redis, by the key they get."""

import json
import os
import time

import redis
from celery import Celery

from switchgear.adapters.celery import PolicyTask
from switchgear.patterns.deadline import left
from switchgear.patterns.idempotency import idempotency_key
from switchgear.patterns.parameters import BreakerParameters, RetryParameters
from switchgear.patterns.propagation import outgoing
from switchgear.patterns.retry import Retry
from switchgear.policies.policy import Policy
from switchgear.refusals import BulkheadFull

URL = os.environ["REDIS_URL"]
app = Celery("tasks", broker=URL, backend=URL)
app.conf.task_default_queue = os.environ["QUEUE"]
store = redis.Redis.from_url(URL, decode_responses=True)

RETRY = RetryParameters(attempts=3, base_seconds=0.02, cap_seconds=0.05)
mail = Policy("worker->mail", retry=RETRY, breaker=BreakerParameters(failure_count=1000))
brittle = Policy("worker->brittle", retry=RETRY, breaker=BreakerParameters(failure_count=1))


class Told(Exception):
    """An error with a Retry-After."""

    status_code = 503
    headers = {"Retry-After": "1"}


def keep(key: str) -> int:
    """Note this attempt; gives how many there were."""
    headers = outgoing()
    attempt = headers.get("X-Retry-Attempt", headers.get("X-Retry-Last-Attempt"))
    attempt_fields = {"attempt": attempt, "key": idempotency_key()}
    return store.rpush(key, json.dumps({**attempt_fields, "at": time.time()}))


@app.task(base=PolicyTask, policy=mail)
def flaky(key: str, times: int) -> int:
    if (n := keep(key)) <= times:
        raise ConnectionError("away")
    return n


@app.task(base=PolicyTask, policy=mail)
def wrong(key: str) -> None:
    keep(key)
    raise ValueError("no such user")


@app.task(base=PolicyTask, policy=mail)
def keep_told(key: str) -> int:
    if (n := keep(key)) == 1:
        raise Told
    return n


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task(base=PolicyTask, policy=mail, bind=True, max_retries=1)
def asking(self: PolicyTask, key: str) -> None:
    """Fails twice, and then asks to be tried again for ever."""
    if keep(key) <= 2:
        raise ConnectionError("away")
    raise self.retry(countdown=0.02)


@app.task(base=PolicyTask, policy=mail, refused_seconds=0.05)
def refused(key: str, times: int) -> int:
    n = keep(key)
    if n <= times:
        refusal = BulkheadFull("mail", "queue is full")
        raise refusal if n % 2 else OSError("no answer") from refusal
    if n == times + 1:
        raise ConnectionError("away")
    return n


@app.task(base=PolicyTask, policy=brittle, bind=True, refused_seconds=None)
def ask_again(self: PolicyTask, key: str) -> int:
    """Asks Celery itself to be tried again, which is no failure."""
    if (n := keep(key)) < 3:
        raise self.retry(countdown=0.02)
    return n


@app.task(base=PolicyTask, policy=mail, is_awaited=True)
def awaited(key: str) -> float | None:
    keep(key)
    return left()


@app.task(base=PolicyTask, policy=mail, is_awaited=True)
def awaited_flaky(key: str) -> None:
    keep(key)
    raise ConnectionError("away")


@app.task(base=PolicyTask)
def bare(key: str) -> int:
    """Without a policy: what it calls may try again by itself."""
    return Retry(parameters=RETRY)(flaky.run)(key, 2)


@app.task(base=PolicyTask, policy=mail)
def hurried(key: str) -> float | None:
    return left()
