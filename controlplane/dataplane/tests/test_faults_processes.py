"""Data plane processes that are killed under load, and one that is shut down."""

import asyncio
import functools
import os
import signal
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.processes import Server, data_plane
from controlplane.dataplane.tests.test_alone import variables
from controlplane.dataplane.tests.test_following import engage, make_token
from controlplane.dataplane.tests.watch import Watch, watching
from controlplane.tests.installation import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
TOKEN = {"X-API-Key": "sg_reader0001_secret"}
CROWD = 10
HELD = 200
STREAMS = 200
END_SECONDS = 3.0
BROKEN_SECONDS = 1.0
"""Time after a kill in which connections to the dead process may still break."""
RESPAWN_SECONDS = 15.0


async def press(url: str, responses: list[tuple[float, int]]) -> None:
    """Poll without a pause, as many services would, and record time and status of each answer.

    The status is 0 for a connection that broke.
    """
    async with httpx.AsyncClient(headers=TOKEN, timeout=5) as client:
        while True:
            try:
                response = await client.post(f"{url}/api/v1/check", json={"segments": ["finance"]})
                status = response.status_code
            except httpx.TransportError:
                status = 0
            responses.append((time.monotonic(), status))
            await asyncio.sleep(0.01)


def test_a_process_killed_under_load_is_replaced_and_the_others_answer(
    idle: Following, tmp_path: Path
) -> None:
    make_token()
    version, kills = engage("finance"), []
    responses: list[tuple[float, int]] = []
    with (
        data_plane(variables(idle, tmp_path), tmp_path / "data", workers=2) as plane,
        # One address twice: two processes share it, so a poller has to send its version.
        watching(idle.loop, TOKEN, [plane.url, plane.url]) as watch,
    ):
        with watch.may_refuse():  # The second process may be a little later than the first.
            watch.until_all_have(version, 5)
            time.sleep(1)
        crowd = [
            asyncio.run_coroutine_threadsafe(press(plane.url, responses), idle.loop.loop)
            for _ in range(CROWD)
        ]
        for number, victim in enumerate(plane.workers()):
            time.sleep(1)
            with watch.may_break(seconds_after=BROKEN_SECONDS):
                kills.append(time.monotonic())
                os.kill(victim, signal.SIGKILL)
            watch.until_all_have(engage(f"s{number}"), 3)
            wait_until(
                functools.partial(is_replaced, plane, victim), RESPAWN_SECONDS, plane.read_output
            )
            watch.until_all_have(engage(f"t{number}"), 3)
        time.sleep(1)
        for each in crowd:
            each.cancel()
        watch.judge(recovers_within=0)
    assert len(kills) == 2
    wrong = [each for each in responses if each[1] != 200 and not _just_after(each[0], kills)]
    print(f"{len(responses)} answers to the crowd, {sum(not s for _, s in responses)} broke")
    assert not wrong
    assert len(responses) > 200


def _just_after(moment: float, kills: list[float]) -> bool:
    return any(kill <= moment <= kill + BROKEN_SECONDS for kill in kills)


def is_replaced(plane: Server, victim: int) -> bool:
    workers = plane.workers()
    return len(workers) == 2 and victim not in workers


@pytest.mark.smoke
def test_a_term_signal_answers_everybody_who_is_held_and_ends_in_time(
    idle: Following, tmp_path: Path
) -> None:
    make_token()
    version = engage("finance")
    with (
        data_plane(variables(idle, tmp_path), tmp_path / "data") as plane,
        watching(idle.loop, TOKEN, [plane.url]) as watch,
    ):
        watch.until_all_have(version, 5)
        polls, streams, seconds = asyncio.run(end_with_all_held(plane, watch))
        print(f"ended {seconds:.2f} s after the signal")
        watch.judge(recovers_within=0)
    assert polls == {304: HELD}
    assert streams == {"ended": STREAMS}
    assert seconds < END_SECONDS


async def end_with_all_held(
    plane: Server, watch: Watch
) -> tuple[Counter[int], Counter[str], float]:
    """Return how each poll and stream ended, and the seconds from the signal to the exit."""
    limits = httpx.Limits(max_connections=None)
    listening = 0

    async with httpx.AsyncClient(headers=TOKEN, timeout=60, limits=limits) as client:
        tag = (await client.get(f"{plane.url}/api/v1/snapshot")).headers["ETag"]

        async def poll() -> int:
            address = f"{plane.url}/api/v1/snapshot?wait=50"
            return (await client.get(address, headers={"If-None-Match": tag})).status_code

        async def stream() -> str:
            nonlocal listening
            try:
                async with client.stream("GET", f"{plane.url}/api/v1/snapshot/stream") as response:
                    listening += 1
                    async for _ in response.aiter_raw():
                        pass
            except httpx.TransportError as error:
                return repr(error)
            return "ended"

        polls = [asyncio.create_task(poll()) for _ in range(HELD)]
        streams = [asyncio.create_task(stream()) for _ in range(STREAMS)]
        async with asyncio.timeout(20):
            while listening < STREAMS:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        assert not any(task.done() for task in (*polls, *streams))
        assert plane.process is not None
        with watch.may_break(seconds_after=60):
            began = time.monotonic()
            plane.process.terminate()
            await asyncio.to_thread(plane.process.wait, 20)
            seconds = time.monotonic() - began
        return (
            Counter(await asyncio.gather(*polls)),
            Counter(await asyncio.gather(*streams)),
            seconds,
        )
