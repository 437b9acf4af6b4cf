"""Tasks within policies, in a real worker, on the Redis that the suite runs with."""

import importlib
import json
import sys
import time
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import celery
import pytest
import redis
from celery.exceptions import MaxRetriesExceededError

from switchgear.patterns.deadline import Deadline
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from tests.dlq.streams import URL
from tests.service_processes import environment, running

PATIENCE = 60


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module of tasks, whose queue has a worker."""
    folder, queue = tmp_path_factory.mktemp("worker"), f"tasks-{uuid.uuid4().hex}"
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    options = ("-A", "tests.adapters.tasks", "worker", "--pool", "solo", *quiet)
    env = environment(None, folder, REDIS_URL=URL, QUEUE=queue)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDIS_URL", URL)
        patch.setenv("QUEUE", queue)
        sys.modules.pop("tests.adapters.tasks", None)
        module = importlib.import_module("tests.adapters.tasks")
        with running("celery", *options, folder=folder, env=env):
            module.flaky.delay(f"warm-{queue}", 0).get(timeout=PATIENCE)
            yield module
        module.app.close()
    with redis.Redis.from_url(URL) as client:
        client.delete(queue, f"_kombu.binding.{queue}", f"warm-{queue}")


@pytest.fixture
def key() -> Iterator[str]:
    unique_key = f"attempts-{uuid.uuid4().hex}"
    yield unique_key
    with redis.Redis.from_url(URL) as client:
        client.delete(unique_key)


def attempts_of(key: str) -> list[dict[str, Any]]:
    with redis.Redis.from_url(URL) as client:
        return [json.loads(each) for each in client.lrange(key, 0, -1)]


def test_task_is_tried_again_as_a_message_with_one_key(tasks: ModuleType, key: str) -> None:
    result = tasks.flaky.delay(key, 2)
    assert result.get(timeout=PATIENCE) == 3
    attempts = attempts_of(key)
    assert [each["attempt"] for each in attempts] == ["0", "1", "2"]
    assert {each["key"] for each in attempts} == {result.id}


def test_task_that_fails_for_good_raises_its_error_in_the_end(tasks: ModuleType, key: str) -> None:
    with pytest.raises(ConnectionError, match="away"):
        tasks.flaky.delay(key, 9).get(timeout=PATIENCE)
    assert len(attempts_of(key)) == 3


def test_error_that_does_not_pass_is_not_tried_again(tasks: ModuleType, key: str) -> None:
    with pytest.raises(ValueError, match="no such user"):
        tasks.wrong.delay(key).get(timeout=PATIENCE)
    assert len(attempts_of(key)) == 1


def test_retry_after_is_waited_for_by_the_message(tasks: ModuleType, key: str) -> None:
    result = tasks.keep_told.delay(key)
    quick = tasks.flaky.delay(f"{key}-quick", 0)
    assert quick.get(timeout=PATIENCE) == 1
    assert len(attempts_of(key)) == 1, "a worker that slept would have come later"
    assert result.get(timeout=PATIENCE) == 2
    first, second = attempts_of(key)
    assert second["at"] - first["at"] >= 1
    with redis.Redis.from_url(URL) as client:
        client.delete(f"{key}-quick")


def test_refusals_come_back_and_count_as_no_attempts(tasks: ModuleType, key: str) -> None:
    assert tasks.refused.delay(key, 5).get(timeout=PATIENCE) == 7
    assert [each["attempt"] for each in attempts_of(key)] == [*["0"] * 6, "1"]


def test_chord_waits_for_what_comes_again(tasks: ModuleType, key: str) -> None:
    parts = [tasks.flaky.s(f"{key}-{times}", times) for times in (0, 1, 2)]
    made = celery.chord([*parts, tasks.refused.s(key, 2)])(tasks.total.s())

    assert made.get(timeout=PATIENCE) == 1 + 2 + 3 + 4
    with redis.Redis.from_url(URL) as client:
        client.delete(*(f"{key}-{times}" for times in (0, 1, 2)))


def test_what_a_task_asks_for_ends_at_max_retries(tasks: ModuleType, key: str) -> None:
    """Two of its retries are the policy's, one is its own."""
    with pytest.raises(MaxRetriesExceededError):
        tasks.asking.delay(key).get(timeout=PATIENCE)
    assert len(attempts_of(key)) == 4


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ask_again", id="by its body, whose breaker a single failure would open"),
        pytest.param("bare", id="without a policy"),
    ],
)
def test_task_that_asks_for_it_is_tried_again(tasks: ModuleType, key: str, name: str) -> None:
    assert getattr(tasks, name).delay(key).get(timeout=PATIENCE) == 3


def test_deadline_of_who_waits_holds_in_the_worker(tasks: ModuleType, key: str) -> None:
    with Deadline(50):
        awaited = tasks.awaited.delay(key).get(timeout=PATIENCE)
        hurried = tasks.hurried.delay(key).get(timeout=PATIENCE)
    assert 0 < awaited < 50
    assert hurried is None
    assert tasks.awaited.delay(key).get(timeout=PATIENCE) is None


def test_time_in_the_queue_counts(tasks: ModuleType, key: str) -> None:
    headers = {"X-Request-Timeout-Ms": "30000", "Switchgear-Sent-At": time.time() - 31}
    result = tasks.awaited.apply_async((key,), headers=headers)
    assert "NoTimeLeft" in repr(result.get(timeout=PATIENCE, propagate=False))
    assert attempts_of(key) == []


def test_task_is_not_tried_again_where_who_waits_does(tasks: ModuleType, key: str) -> None:
    retry = Retry(parameters=RetryParameters(attempts=2, base_seconds=0))
    with pytest.raises(ConnectionError):
        retry(lambda: tasks.awaited_flaky.delay(key).get(timeout=PATIENCE))()
    assert [each["attempt"] for each in attempts_of(key)] == ["0", "1"]


def test_task_that_is_called_is_a_function_in_its_policy(tasks: ModuleType, key: str) -> None:
    assert tasks.flaky(key, 2) == 3
    with redis.Redis.from_url(URL) as client:
        client.delete(key)
    assert tasks.flaky.apply((key, 2)).get() == 3
    assert [each["attempt"] for each in attempts_of(key)] == ["0", "1", "2"]
