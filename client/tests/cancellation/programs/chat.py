"""A chat service whose provider hangs: 20 calls run, 200 wait in its bulkhead.

python -m tests.cancellation.programs.chat PROVIDER_URL tasks|threads

Prints a JSON line when all of them wait, and one when all that waited are refused: how many, by
error, and how long after this process learned that its switch is engaged (seconds, sorted; without
what a thread waited for a CPU). Then it waits to be killed.
"""

import asyncio
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx

from switchgear import BulkheadParameters, Switchgear

RUNNING, QUEUED = 20, 200
PATIENCE_SECONDS = 60.0


class Chat:
    def __init__(self, url: str) -> None:
        self.url = url
        self.gear = Switchgear.from_env(service="chat")
        self.learned = 0.0
        self.refused: list[tuple[str, float]] = []
        self.policy = self.gear.policy(
            "chat->model",
            feature="chat",
            bulkhead=BulkheadParameters(limit=RUNNING, queue=QUEUED, queue_seconds=300),
        )
        # Before anything that waits: the first to be told.
        self.gear._store.subscribe(self.learn)
        assert self.gear.wait_ready(30)

    def learn(self) -> None:
        if not self.gear.allowed(feature="chat"):
            self.learned = time.monotonic()

    def ended(self, error: Exception, stalled_seconds: float = 0.0) -> None:
        seconds = time.monotonic() - self.learned - stalled_seconds
        self.refused.append((type(error).__name__, seconds))

    def tell(self) -> None:
        """Once all wait, and once all that waited are refused."""
        self.wait_until(lambda: self.policy.bulkhead.look().queued == QUEUED)
        print(json.dumps({"queued": QUEUED, "way": self.gear.status().way}), flush=True)
        self.wait_until(lambda: len(self.refused) >= QUEUED)
        time.sleep(0.5)  # Whoever is let in wrongly begins now.
        found = {
            "errors": Counter(name for name, _ in self.refused),
            "seconds": sorted(seconds for _, seconds in self.refused),
        }
        print(json.dumps(found), flush=True)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not holds() and time.monotonic() < ends:
            time.sleep(0.01)


def stalled_seconds() -> float:
    """Return the seconds in which this thread was ready and waited for a CPU; 0 if unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def in_threads(chat: Chat) -> None:
    @chat.policy
    def ask(n: int) -> None:
        httpx.get(f"{chat.url}/{n}", timeout=PATIENCE_SECONDS)

    def call(n: int) -> None:
        stalled = stalled_seconds()
        try:
            ask(n)
        except Exception as error:
            chat.ended(error, stalled_seconds() - stalled)

    for n in range(RUNNING + QUEUED):
        threading.Thread(target=call, args=(n,), daemon=True).start()
    chat.tell()


async def in_tasks(chat: Chat) -> None:
    limits = httpx.Limits(max_connections=RUNNING + QUEUED)
    async with httpx.AsyncClient(limits=limits, timeout=PATIENCE_SECONDS) as client:

        @chat.policy
        async def ask(n: int) -> None:
            await client.get(f"{chat.url}/{n}")

        async def call(n: int) -> None:
            try:
                await ask(n)
            except Exception as error:
                chat.ended(error)

        tasks = [asyncio.create_task(call(n)) for n in range(RUNNING + QUEUED)]
        await asyncio.to_thread(chat.tell)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def main(url: str, kind: str) -> None:
    chat = Chat(url)
    if kind == "threads":
        in_threads(chat)
    else:
        asyncio.run(in_tasks(chat))
    signal.pause()  # A process that has stopped cleanly would not count as reporting.


if __name__ == "__main__":
    main(*sys.argv[1:])
