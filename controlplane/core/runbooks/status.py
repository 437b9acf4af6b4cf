"""Registry of status lines: the current state of the problem that a runbook is about.

Apps register functions in modules named `runbook_status`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.registry import KindRegistry, RegisteredFunction


@dataclass(frozen=True)
class StatusLine:
    """A sentence about the current state; `tone` is bad, warn, good or "", `path` its page."""

    said: str
    tone: str = ""
    path: str = ""
    since: datetime | None = None


StatusReader = Callable[[datetime], Sequence[StatusLine]]


@dataclass(frozen=True)
class RunbookStatus(RegisteredFunction[StatusReader]):
    """A function that reads the status lines of the runbook `slug`."""

    slug: str = ""


RUNBOOK_STATUS = KindRegistry[RunbookStatus]("runbook_status")


def runbook_status(slug: str) -> Callable[[StatusReader], StatusReader]:
    """Return a decorator that registers a reader of status lines for the runbook `slug`."""

    def register(read: StatusReader) -> StatusReader:
        RUNBOOK_STATUS.register(RunbookStatus(read, slug=slug))
        return read

    return register


def read_lines(slug: str, now: datetime) -> list[StatusLine]:
    readers = [one.function for one in RUNBOOK_STATUS.values() if one.slug == slug]
    return [line for read in readers for line in read(now)]
