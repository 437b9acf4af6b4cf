"""The registry of status lines above runbooks: the present state of the trouble they are about.

Apps register functions in modules named `runbook_status`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.registry import KindRegistry, RegisteredFunction


@dataclass(frozen=True)
class StatusLine:
    """A sentence about the present state; `tone` is bad, warn, good or empty, `path` its page."""

    said: str
    tone: str = ""
    path: str = ""
    since: datetime | None = None


StatusReader = Callable[[datetime], Sequence[StatusLine]]


@dataclass(frozen=True)
class RunbookStatus(RegisteredFunction[StatusReader]):
    """A reader of status lines for the runbook named `slug`."""

    slug: str = ""


RUNBOOK_STATUS = KindRegistry[RunbookStatus]("runbook_status")


def runbook_status(slug: str) -> Callable[[StatusReader], StatusReader]:
    """Return a decorator that registers a reader for the runbook of this name."""

    def register(read: StatusReader) -> StatusReader:
        RUNBOOK_STATUS.register(RunbookStatus(read, slug=slug))
        return read

    return register


def lines(slug: str, now: datetime) -> list[StatusLine]:
    """Return the status lines of a runbook, in the order of registration."""
    readers = [one.function for one in RUNBOOK_STATUS.values() if one.slug == slug]
    return [line for read in readers for line in read(now)]
