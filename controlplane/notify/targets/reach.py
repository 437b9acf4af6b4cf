"""Reach of targets: the destinations with a configured transport."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core import durations
from controlplane.notify.models.targets import EscalationStep, Target
from controlplane.notify.transports import registry

from . import directory
from .directory import Directory


@dataclass(frozen=True)
class Reach:
    """The person or channel of a target and its destinations; `why` explains if there are none."""

    who: str
    to: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Rung:
    """A step of an escalation, with its current reach."""

    step: EscalationStep
    reach: Reach

    @property
    def after(self) -> str:
        """The delay of the step, as `5 min` or `2 h`; empty if it has none."""
        minutes = self.step.after_minutes
        return durations.format_readable(timedelta(minutes=minutes)) if minutes else ""

    @property
    def name(self) -> str:
        """The target with its person, as `on-call (kim)`, or the target alone, as `slack`."""
        name, who = self.step.target.name, self.reach.who
        return f"{name} ({who})" if who and who != name else name


def reach(target: Target, now: datetime) -> Reach:
    """Return the reach of a target at `now`."""
    return reached(target, directory.read([target]), now)


def reached(target: Target, known: Directory, now: datetime) -> Reach:
    """Return the reach of a target at `now` from a directory, without a query."""
    found = known.behind(target, now)
    if found is None:
        return Reach("", (), "nobody configured")
    wanted = known.destinations(found, now)
    if to := tuple(destination for destination in wanted if configured(destination)):
        return Reach(found.name, to)
    return Reach(found.name, (), _why_not(found, wanted))


def configured(destination: str) -> bool:
    """Return whether some transport is configured to send to the destination of a target.

    A channel with settings of its own has a destination only if they are complete.
    """
    transport = registry.transport_for(destination)
    if transport is None:
        return False
    return transport.settings is not None or transport.reaches(destination)


def ladders(severities: Sequence[str], now: datetime) -> dict[str, list[Rung]]:
    """Return the steps of each severity's escalation with their reach, in order."""
    steps = steps_of(severities)
    return group(steps, severities, directory.read(step.target for step in steps), now)


def steps_of(severities: Sequence[str]) -> list[EscalationStep]:
    """Return the steps of these severities' escalations, in order."""
    rows = EscalationStep.objects.select_related("target__user", "escalation")
    wanted = {
        "escalation__name__in": list(severities),
        "escalation__kind": Target.Kind.ESCALATION,
    }
    return list(rows.filter(**wanted).order_by("escalation", "position"))


def group(
    steps: Iterable[EscalationStep], severities: Sequence[str], known: Directory, now: datetime
) -> dict[str, list[Rung]]:
    """Return :func:`ladders` from a directory of the steps' targets, without a query."""
    found: dict[str, list[Rung]] = defaultdict(list)
    for step in steps:
        found[step.escalation.name].append(Rung(step, reached(step.target, known, now)))
    return {severity: found[severity] for severity in severities}


def _why_not(found: Target, wanted: list[str]) -> str:
    if found.user is not None and not found.user.is_active:
        return f"the account {found.user.username} is closed"
    if not wanted:
        return "nobody configured"
    kinds = {destination.partition(":")[0] for destination in wanted}
    return f"{' and '.join(sorted(registry.describe(kinds)))} not configured on this server"
