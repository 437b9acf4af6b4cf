"""Registry of the kinds of jobs: their work, and the interventions of people."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.module_loading import autodiscover_modules

from controlplane.core.actors import Actor
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.models import Job

MAX_AT_ONCE = 2000

Probe = Callable[[str], None]
"""Called at each point where a worker may die, with the point's name. Tests die there."""
Work = Callable[[Sequence[LeasedJob], datetime, Probe], int]
"""Go on with the claimed jobs of a kind; returns how many it moved. Leases are given back after."""
Intervention = Callable[[Job, str, Actor, datetime], None]
"""Pause, resume or cancel a job, for a reason. It locks what it needs, in the order of its app."""


def no_probe(_point: str) -> None:
    """Do nothing: the probe outside of tests."""


@dataclass(frozen=True)
class JobKind:
    """A kind of job; `tick` works on it, `path` is the page of one job.

    `scope` is required to intervene. `interventions` (`pause`, `resume`, `cancel`) replace the
    general ones where more than the job's row changes. `most` jobs are claimed at once: few if each
    takes long, since all must be worked on within one lease. `kept_days` is the retention of ended
    jobs; None keeps them for ever. With `tells_failures` the kind announces its failures itself.
    """

    name: str
    title: str
    tick: str
    work: Work
    path: Callable[[Job], str]
    scope: str = "switches:write"
    interventions: Mapping[str, Intervention] = field(default_factory=dict)
    most: int = MAX_AT_ONCE
    kept_days: int | None = None
    tells_failures: bool = False


_registered: dict[str, JobKind] = {}


def register(kind: JobKind) -> JobKind:
    """Register a kind, in the `jobs` module of its app."""
    _registered[kind.name] = kind
    return kind


def get_kinds() -> Mapping[str, JobKind]:
    """Return every kind by name."""
    _discover()
    return _registered


@functools.cache
def _discover() -> None:
    """Import the `jobs` modules once: the search takes milliseconds, and ticks look up often."""
    autodiscover_modules("jobs")


def get_kinds_of_tick(tick: str) -> list[JobKind]:
    return [kind for kind in get_kinds().values() if kind.tick == tick]
