"""Questions from the event loop: in time, and never more than a desk takes."""

import asyncio
import threading

import pytest

from controlplane.core.errors import Unavailable
from controlplane.live.query_threads import QueryPool


def test_desk_that_is_full_refuses_at_once_and_takes_again_later():
    async def run() -> int:
        query_pool, go_on = QueryPool(threads=1, most=2), threading.Event()
        tasks = [asyncio.create_task(query_pool.run(go_on.wait, 5)) for _ in range(2)]
        await asyncio.sleep(0)

        with pytest.raises(Unavailable) as refused:
            await query_pool.run(lambda: 1, 5)

        assert refused.value.retry_after
        go_on.set()
        await asyncio.gather(*tasks)
        answer = await query_pool.run(lambda: 1, 5)
        query_pool.close()
        return answer

    assert asyncio.run(run()) == 1


def test_question_that_was_given_up_takes_no_place():
    async def run() -> int:
        query_pool, go_on = QueryPool(threads=2, most=1), threading.Event()
        with pytest.raises(TimeoutError):
            await query_pool.run(go_on.wait, 0.05)

        answer = await query_pool.run(lambda: 1, 5)

        go_on.set()
        query_pool.close()
        return answer

    assert asyncio.run(run()) == 1
