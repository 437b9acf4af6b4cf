"""Coroutine functions that are told which switches have changed."""

import asyncio
import threading

import pytest

from tests.console.change_listeners import row
from tests.wait_helpers import wait_until


def test_coroutine_function_runs_on_the_loop_it_was_given_on(store):
    async def serve():
        changes, threads = [], set()

        async def listen(change):
            await asyncio.sleep(0)
            threads.add(threading.current_thread())
            changes.append(change.after)

        store.notifier.add(listen, ())
        for rows in ([row("feature:chat")], []):
            await asyncio.to_thread(store.show, *rows)
            async with asyncio.timeout(30):
                while len(changes) < store.version:
                    await asyncio.sleep(0.01)
        return changes, threads == {threading.current_thread()}

    assert asyncio.run(serve()) == (["engaged", "released"], True)


def test_slow_coroutine_is_called_by_one_at_a_time(store):
    async def serve():
        changes, inside = [], []

        async def listen(change):
            inside.append(1)
            changes.append((len(inside), change.after))
            await asyncio.sleep(0.1)
            inside.pop()
            if change.after == "ramping":
                raise ValueError

        store.notifier.add(listen, ())
        for rows in ([row("feature:chat")], [row("feature:chat", "ramping", 5)], []):
            await asyncio.to_thread(store.show, *rows)
            await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            while changes[-1][1] != "released":
                await asyncio.sleep(0.01)
        return changes

    changes = asyncio.run(serve())

    assert {count for count, _ in changes} == {1}


def test_coroutine_function_without_a_loop_is_refused(store):
    async def listen(change): ...

    with pytest.raises(RuntimeError, match="event loop"):
        store.notifier.add(listen, ())


def test_changes_after_the_loop_was_closed_are_dropped_with_a_count(store):
    async def listen(change): ...

    async def serve():
        store.notifier.add(listen, ())

    asyncio.run(serve())
    changes = []
    store.notifier.add(changes.append, ())

    store.show(row("feature:chat"), row("feature:search"))
    wait_until(lambda: len(changes) == 2)
    store.show()
    wait_until(lambda: len(changes) == 4)

    assert store.notifier.dropped == 2


def test_callback_that_waits_for_what_was_cancelled_hears_the_other_changes(store, caplog):
    async def serve():
        changes = []

        async def listen(change):
            changes.append(change.switch)
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone

        store.notifier.add(listen, ())
        for rows in ([row("feature:a"), row("feature:b")], []):
            before = len(changes)
            await asyncio.to_thread(store.show, *rows)
            async with asyncio.timeout(30):
                while len(changes) < before + 2:
                    await asyncio.sleep(0.01)
        return changes

    assert asyncio.run(serve()) == ["feature:a", "feature:b"] * 2
    assert "was cancelled" in caplog.text
    assert store.notifier.dropped == 0


def test_task_that_is_cancelled_before_it_begins_is_not_the_last_one(store):
    async def serve():
        changes = []

        async def listen(change):
            changes.append(change.switch)

        store.notifier.add(listen, ())
        [listener] = store.notifier._listeners
        store.show(row("feature:chat"))
        wait_until(lambda: listener.is_busy)  # Meanwhile the event loop stands still.
        asyncio.get_running_loop().call_soon(lambda: listener.task.cancel())
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            while listener.is_busy:
                await asyncio.sleep(0.01)
        missed = store.notifier.dropped
        await asyncio.to_thread(store.show, row("feature:chat"), row("feature:search"))
        async with asyncio.timeout(30):
            while not changes:
                await asyncio.sleep(0.01)
        return missed, changes

    assert asyncio.run(serve()) == (1, ["feature:search"])


def test_coroutine_that_nobody_awaits_is_logged_once(store, caplog):
    changes = []

    async def listen(change): ...

    def mislead(change):
        changes.append(change)
        return listen(change)

    store.notifier.add(mislead, ())
    store.show(row("feature:a"), row("feature:b"))

    wait_until(lambda: len(changes) == 2)
    store.show()
    wait_until(lambda: len(changes) == 4)
    assert caplog.text.count("was not awaited") == 1
