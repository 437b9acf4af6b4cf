"""PostgreSQL or Redis gone, frozen or absent: old answers with a correct age, and no restart."""

import asyncio
import time
from dataclasses import replace

from controlplane.dataplane.sync.refresher import SUBSCRIBER_PACE, make_subscriber
from controlplane.dataplane.tests.conftest import POLL_SECONDS, Following
from controlplane.dataplane.tests.lines import Line, wait_until
from controlplane.dataplane.tests.test_following import A_POLL, A_SECOND, engage, has


def test_database_gone_lets_the_age_grow_until_it_is_back(following: Following) -> None:
    wait_until(has(following, engage("finance")), 3)
    served = following.state.copy

    following.database.cut()
    wait_until(lambda: not following.state.status().database_reachable, 3)
    wait_until(lambda: following.state.age_seconds() > 5 * POLL_SECONDS, 3)
    assert following.state.copy is served

    following.database.mend()
    wait_until(lambda: following.state.age_seconds() < 5 * POLL_SECONDS, 3)
    assert following.state.status().database_reachable
    wait_until(has(following, engage("later")), 3)


def test_frozen_database_is_noticed_and_its_thaw_too(following: Following) -> None:
    wait_until(has(following, engage("finance")), 3)

    following.database.freeze()
    noticed = wait_until(lambda: not following.state.status().database_reachable, 8)
    assert noticed < 3
    version = engage("meanwhile")
    wait_until(lambda: following.state.age_seconds() > 1, 3)
    assert following.state.status().version != version

    following.database.thaw()
    wait_until(has(following, version), 3)
    assert following.state.age_seconds() < A_SECOND


def test_event_loop_turns_while_the_database_is_frozen(idle: Following) -> None:
    idle.config = replace(idle.config, deadline_seconds=0.3)
    idle.start()
    idle.database.freeze()
    wait_until(lambda: not idle.state.status().database_reachable, 8)

    async def soon() -> None: ...

    slowest = 0.0
    for _ in range(60):
        began = time.monotonic()
        idle.loop.run(soon())
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.02)
    assert slowest < 0.5


def test_start_without_a_database_is_quick_and_recovers(idle: Following) -> None:
    idle.database.cut()

    began = time.monotonic()
    idle.start()
    assert time.monotonic() - began < 4
    assert idle.state.copy is None
    assert not idle.state.status().database_reachable

    idle.database.mend()
    wait_until(lambda: idle.state.copy is not None, 4)


def test_start_with_a_frozen_database_is_quick_and_recovers(idle: Following) -> None:
    idle.database.freeze()

    began = time.monotonic()
    idle.start()
    assert time.monotonic() - began < 4
    assert idle.state.copy is None

    idle.database.thaw()
    wait_until(lambda: idle.state.copy is not None, 4)


def count_attempts(*lines: Line) -> list[int]:
    """Return, for each line, the number of connections in the next 1.2 s."""
    before = [line.accepted for line in lines]
    time.sleep(1.2)
    return [line.accepted - count for line, count in zip(lines, before, strict=True)]


def test_servers_that_are_gone_are_not_asked_in_a_busy_loop(following: Following) -> None:
    wait_until(lambda: following.redis.accepted > 0, 5)
    for line in (following.database, following.redis):
        line.slams = True
        line.cut()
        line.mend()
    database, redis = count_attempts(following.database, following.redis)

    # Half a second apart on average, with growing intervals.
    assert 2 <= database <= 8
    assert 1 <= redis <= 4


def test_frozen_servers_are_not_asked_in_a_busy_loop(idle: Following) -> None:
    idle.config = replace(idle.config, deadline_seconds=0.3)
    idle.start()
    wait_until(lambda: idle.redis.accepted > 0, 5)
    for line in (idle.database, idle.redis):
        line.freeze()
        line.cut()
        line.mend()
    database, redis = count_attempts(idle.database, idle.redis)

    assert 1 <= database <= 5
    assert 1 <= redis <= 3


def test_silent_redis_is_told_from_a_frozen_one(idle: Following) -> None:
    ear = make_subscriber(
        idle.config.redis_url, lambda: None, pace=replace(SUBSCRIBER_PACE, silence_seconds=0.1)
    )
    listening = asyncio.run_coroutine_threadsafe(ear.run(), idle.loop.loop)
    wait_until(lambda: idle.redis.accepted == 1, 5)
    time.sleep(0.7)
    assert idle.redis.accepted == 1

    idle.redis.freeze()
    wait_until(lambda: idle.redis.accepted >= 2, 5)
    listening.cancel()


def test_pauses_between_attempts_grow_to_a_limit_and_never_end() -> None:
    pauses = [SUBSCRIBER_PACE.pause_seconds(failures) for failures in (1, 2, 3, 10, 100_000)]

    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert pauses[-1] == SUBSCRIBER_PACE.longest_pause_seconds


def test_frozen_redis_costs_no_more_than_a_poll(following: Following) -> None:
    following.redis.freeze()

    for key in ("a", "b"):
        assert wait_until(has(following, engage(key)), 5) < A_POLL


def test_stop_is_quick_even_with_everything_frozen(following: Following) -> None:
    following.database.freeze()
    following.redis.freeze()
    time.sleep(3 * POLL_SECONDS)

    began = time.monotonic()
    following.stop()

    assert time.monotonic() - began < 4
