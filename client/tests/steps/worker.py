"""A worker in a process of its own: `python -m tests.steps.worker FILE URL STUCK_SECONDS`.

It works until all jobs are over; its exit status is 3 if a job was taken from it.
"""

import contextlib
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path

from switchgear.patterns.idempotency import idempotency_key
from switchgear.steps import Context, Job, LeaseLost, Runner, SQLiteStore, Step

PATH, URL, STUCK_SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
ITEMS = 4


def deliver() -> str:
    headers = {"Idempotency-Key": idempotency_key() or "", "Pid": str(os.getpid())}
    request = urllib.request.Request(URL, b"{}", headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def one(context: Context) -> object:
    return context.once("post", "receiver", f"{context.job_id}:{context.step}", deliver)


def bulk(context: Context) -> int:
    for n in range(context.previous_checkpoint or 0, ITEMS):
        context.once("post", "receiver", f"{context.job_id}:bulk:{n}", deliver)
        context.save_checkpoint(n + 1)
    return ITEMS


def undo(context: Context) -> None:
    context.once("post", "receiver", f"{context.job_id}:undo-{context.step}", deliver)


def broken(context: Context) -> None:
    raise ValueError("broken")


def stopped(context: Context) -> str:
    """Stand still within an effect, the first time."""
    context.save_checkpoint(f"attempt {context.attempt}")
    if context.attempt == 1:
        Path(f"{PATH}.stopped").write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(LeaseLost):  # As careless code would.
            context.save_checkpoint("from the dead")
        return "from the dead"
    return "from the living"


JOBS = (
    Job("forward", (Step(name="a", run=one), Step(name="bulk", run=bulk), Step(name="z", run=one))),
    Job(
        "backward",
        (
            Step(name="a", run=one, compensate=undo),
            Step(name="b", run=one, compensate=undo),
            Step(name="broken", run=broken),
        ),
    ),
    Job("stopped", (Step(name="stopped", run=stopped),)),
)


def main() -> int:
    store = SQLiteStore(PATH)
    beat = STUCK_SECONDS / 5
    runner = Runner(store, JOBS, heartbeat_seconds=beat, stuck_seconds=STUCK_SECONDS)
    if len(sys.argv) > 4:
        try:
            runner.run(sys.argv[4])
        except LeaseLost:
            return 3
        return 0
    idle_until = time.monotonic() + 2 * STUCK_SECONDS
    while time.monotonic() < idle_until:
        if runner.run_due(1):
            idle_until = time.monotonic() + 2 * STUCK_SECONDS
        else:
            time.sleep(0.02)
    return 0


if __name__ == "__main__":
    sys.exit(main())
