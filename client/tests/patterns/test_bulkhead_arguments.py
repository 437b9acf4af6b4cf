"""Arguments of a wrong type raise at once, and the limits of a queue hold."""

import asyncio
import threading
import time

import pytest

from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.parameters import DEFAULT_QUEUE_SECONDS, BulkheadParameters
from switchgear.policies import documents
from switchgear.refusals import BulkheadFull

PATIENCE = 20.0


@pytest.mark.parametrize("wrong", [3, {"limit": 3}, pytest.param(object(), id="object")])
def test_parameters_of_a_wrong_type_are_refused_by_name(wrong):
    with pytest.raises(TypeError, match=r"^parameters must be BulkheadParameters"):
        Bulkhead("llm", wrong)
    with pytest.raises(TypeError, match=r"^parameters must be BulkheadParameters"):
        Bulkhead("llm").configure(wrong)


def test_a_decorator_without_parentheses_is_refused_and_says_how():
    with pytest.raises(TypeError, match=r"name must be text.*@Bulkhead\(name, Bulk.*limit="):

        @Bulkhead
        def ask():
            pass


def test_a_key_that_is_no_function_is_refused_by_name():
    with pytest.raises(TypeError, match=r"^key must be a function"):
        Bulkhead("llm", BulkheadParameters(limit=1), key="kim")


def test_a_queue_without_seconds_waits():
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=1, queue=2))
    permit, got = bulkhead.acquire(), []
    thread = threading.Thread(target=lambda: got.append(bulkhead.acquire()), daemon=True)
    thread.start()
    ends = time.monotonic() + PATIENCE
    while bulkhead.look().queued == 0 and time.monotonic() < ends:
        time.sleep(0.002)

    permit.release()
    thread.join(PATIENCE)

    assert len(got) == 1
    assert bulkhead.parameters.wait_seconds == DEFAULT_QUEUE_SECONDS


def test_a_queue_without_seconds_waits_no_longer_than_the_deadline():
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=1, queue=2))
    bulkhead.acquire()
    began = time.monotonic()

    with pytest.raises(BulkheadFull, match="no permit before the deadline"), Deadline(0.05):
        bulkhead.acquire()

    assert time.monotonic() - began < DEFAULT_QUEUE_SECONDS / 2


@pytest.mark.parametrize(
    "parameters",
    [
        BulkheadParameters(limit=1, queue=2, queue_seconds=0),
        BulkheadParameters(limit=1),
        BulkheadParameters(limit=1, queue=0, queue_seconds=9),
    ],
    ids=["no seconds", "no queue", "seconds without a queue"],
)
def test_only_a_queue_that_is_full_is_called_full(parameters):
    bulkhead = Bulkhead("llm", parameters)
    bulkhead.acquire()

    with pytest.raises(BulkheadFull, match=r"limit of 1$"):
        bulkhead.acquire()
    with pytest.raises(BulkheadFull, match=r"limit of 1$"):
        asyncio.run(bulkhead.acquire_async())


def test_rejection_in_an_event_loop_explains_the_missing_wait():
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=1, queue=2))

    @bulkhead
    def ask():
        raise AssertionError("it began")

    async def main():
        await bulkhead.acquire_async()
        with pytest.raises(BulkheadFull, match="limit of 1; a plain function can't wait in an"):
            ask()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("document", "seconds"),
    [
        ({"limit": 20, "queue": 40}, DEFAULT_QUEUE_SECONDS),
        ({"limit": 20, "queue": 40, "queue_seconds": None}, DEFAULT_QUEUE_SECONDS),
        ({"limit": 20, "queue": 40, "queue_seconds": 0}, 0),
        ({"limit": 20, "queue": 40, "queue_seconds": 2}, 2),
        ({"tier": "critical"}, 300),
    ],
)
def test_documents_of_every_console_are_understood(document, seconds):
    text = '{"version": 1, "dependencies": {"a->b": {"bulkhead": %s}}}'

    found = documents.parse_document(
        (text % str(document).replace("None", "null").replace("'", '"')).encode(), {}
    )

    assert found.problems == ()
    assert found.dependencies["a->b"].bulkhead.wait_seconds == seconds
