"""What apps register for each kind of job: who works on it, and what people may do with it."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.module_loading import autodiscover_modules

from controlplane.core.actors import Actor
from controlplane.core.jobs.claims import Turn
from controlplane.core.jobs.models import Job

MAX_AT_ONCE = 2000

Probe = Callable[[str], None]
"""Called at each point where a worker may die, with the point's name. Tests die there."""
Work = Callable[[Sequence[Turn], datetime, Probe], int]
"""Go on with the claimed jobs of a kind; returns how many it moved. Leases are given back after."""
Intervention = Callable[[Job, str, Actor, datetime], None]
"""Pause, resume or cancel a job, for a reason. It locks what it needs, in the order of its app."""


def no_probe(_point: str) -> None:
    """Outside tests nothing happens at any point."""


@dataclass(frozen=True)
class Kind:
    """A kind of job. `tick` is the tick that works on it; `path` is the page about one.

    `scope` is what intervening takes. `interventions` (`pause`, `resume`, `cancel`) replace the
    general ones where a kind has more to do than change its row. `most` are claimed in one turn:
    few if each takes long, as all of them have to be worked on within one lease. `kept_days`: how
    long a job is kept that ended; None is for ever, for kinds with rows of their own about each.
    `tells_failures`: its own messages say that one has failed, so the general one is not sent.
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


_registered: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make a kind known; done in the `jobs` module of its app."""
    _registered[kind.name] = kind
    return kind


def known() -> Mapping[str, Kind]:
    """Every kind by name, of every installed app."""
    _discover()
    return _registered


@functools.cache
def _discover() -> None:
    """Once: looking for modules that apps do not have takes milliseconds, and turns ask often."""
    autodiscover_modules("jobs")


def of_tick(tick: str) -> list[Kind]:
    return [kind for kind in known().values() if kind.tick == tick]
