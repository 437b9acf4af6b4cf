"""Whether anybody would really hear: destinations that some transport is configured for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core import durations
from controlplane.core.outbox import transports
from controlplane.core.targets import routing
from controlplane.core.targets.models import EscalationStep, Target

SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True)
class Reach:
    """Who stands behind a target now, and where they are reached; `why` says why nowhere."""

    who: str
    to: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Rung:
    """A step of an escalation, with whom it would reach now."""

    step: EscalationStep
    reach: Reach

    @property
    def after(self) -> str:
        """`5 min`, `2 h`; empty for at once."""
        minutes = self.step.after_minutes
        return durations.readable(timedelta(minutes=minutes)) if minutes else ""

    @property
    def name(self) -> str:
        """`on-call (kim)`, or `slack` where the target itself is told."""
        name, who = self.step.target.name, self.reach.who
        return f"{name} ({who})" if who and who != name else name


def reach(target: Target, now: datetime) -> Reach:
    """Whom a target reaches at this moment."""
    found = routing.behind(target, now)
    if found is None:
        return Reach("", (), "nobody configured")
    wanted = routing.destinations(found, now)
    to = tuple(destination for destination in wanted if transports.reaches(destination))
    if to:
        return Reach(found.name, to)
    return Reach(found.name, (), _why_not(found, wanted))


def ladder(severity: str, now: datetime) -> list[Rung]:
    """The steps of a severity's escalation, in order."""
    steps = EscalationStep.objects.select_related("target__user")
    steps = steps.filter(escalation__name=severity, escalation__kind=Target.Kind.ESCALATION)
    return [Rung(step, reach(step.target, now)) for step in steps.order_by("position")]


def masked(destinations: Iterable[str]) -> list[str]:
    """Destinations in words: `e-mail kim@example.org`, `Slack #ops`, `webhook`."""
    said = []
    for destination in destinations:
        kind, _, name = destination.partition(":")
        words = {"slack": "Slack", "email": "e-mail", "webhook": "webhook"}.get(kind, kind)
        said.append(words if kind == "webhook" or not name else f"{words} {name}")
    return said


def _why_not(found: Target, wanted: list[str]) -> str:
    if found.user is not None and not found.user.is_active:
        return f"the account {found.user.username} is closed"
    if not wanted:
        return "nobody configured"
    kinds = {destination.partition(":")[0] for destination in wanted}
    names = {"slack": "Slack", "email": "e-mail", "webhook": "the webhook"}
    ways = " and ".join(sorted(names.get(kind, kind) for kind in kinds))
    return f"{ways} not configured on this server"
