"""Stores and runners for tests, and their journal."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from switchgear import journal
from switchgear.steps import Job, Runner, SQLiteStore, Step
from switchgear.testing import FakeClock


class Bench:
    """A store in a folder, a clock, and runners on them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "jobs.db"
        self.store = SQLiteStore(self.path)
        self.time = FakeClock()

    def runner(self, *steps: Step, on_failure: Any = "compensate", **terms: Any) -> Runner:
        job = Job("job", steps, on_failure=on_failure)
        return Runner(self.store, [job], **{"clock": self.time.wall, **terms})


class Outside:
    """The outside world: a record of the effects that reached it."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, key: str) -> dict[str, str]:
        self.sent.append(key)
        return {"receipt": f"r-{key}"}


@contextlib.contextmanager
def noted() -> Iterator[list[journal.Entry]]:
    """Return the entries of the journal."""
    entries: list[journal.Entry] = []
    remove = journal.add_hook(entries.append)
    try:
        yield entries
    finally:
        remove()
