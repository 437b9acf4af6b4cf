"""Reach of targets: the person or channel that is notified, and the usable destinations."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from controlplane.core import durations
from controlplane.core.message_templates import SEVERITIES
from controlplane.notify.models.targets import EscalationStep, Target
from controlplane.notify.transports import destinations

from . import directory
from .directory import Directory

DIRECT_KINDS = (Target.Kind.PERSON, Target.Kind.CHANNEL)
"""Kinds of targets that stand for themselves."""


@dataclass(frozen=True)
class Reach:
    """The name of the person or channel that a target stands for, and its usable destinations.

    `why` is the reason if there are no destinations.
    """

    who: str
    to: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Rung:
    """A step of an escalation, with whom its target reaches at present."""

    step: EscalationStep
    reach: Reach

    @property
    def after(self) -> str:
        """The delay of the step, such as `5 min` or `2 h`; empty without a delay."""
        minutes = self.step.after_minutes
        return durations.format_readable(timedelta(minutes=minutes)) if minutes else ""

    @property
    def name(self) -> str:
        """The target's name and, if different, its present person's, such as `on-call (kim)`."""
        name, who = self.step.target.name, self.reach.who
        return f"{name} ({who})" if who and who != name else name


def reach_from(target: Target, known: Directory, now: datetime) -> Reach:
    """Return whom a target reaches at `now`, by the members and steps in `known`."""
    found = known.behind(target, now)
    if found is None:
        return Reach("", (), "not set up")
    wanted = known.destinations(found, now)
    if to := tuple(destination for destination in wanted if is_configured(destination)):
        return Reach(found.name, to)
    return Reach(found.name, (), _explain(found, wanted))


def is_configured(destination: str) -> bool:
    """Return True if the transport of this destination is configured to send to it."""
    transport = destinations.transport_for(destination)
    # A channel with stored settings has a destination only if they are complete.
    return transport.settings is not None or transport.reaches(destination)


def read_ladders(severities: Sequence[str], now: datetime) -> dict[str, list[Rung]]:
    """Return the steps (the ladder) of each severity's escalation, in order, with their reach."""
    steps = steps_of(severities)
    return group_rungs(
        steps, severities, directory.read_directory(step.target for step in steps), now
    )


def has_recipient(now: datetime) -> bool:
    """Return True if a step, a route or a contact of a team reaches somebody, in one query.

    Their rotations count, too.
    """
    uses = [
        Q(**{f"{path}used_in_steps__escalation__name__in": SEVERITIES})
        | Q(**{f"{path}used_in_steps__escalation__team_contacts__isnull": False})
        | Q(**{f"{path}routes__isnull": False})
        | Q(**{f"{path}team_contacts__isnull": False})
        for path in ("", "rotations__rotation__")
    ]
    used = Target.objects.filter(uses[0] | uses[1], kind__in=DIRECT_KINDS).distinct()
    nothing_behind = Directory({}, {})
    targets = used.select_related("user")
    return any(reach_from(target, nothing_behind, now).to for target in targets)


def steps_of(severities: Sequence[str], others: Collection[int] = ()) -> list[EscalationStep]:
    """Return the steps of the severities' escalations, and of the escalations with ids `others`."""
    rows = EscalationStep.objects.select_related("target__user", "escalation")
    own = Q(escalation__name__in=severities, escalation__kind=Target.Kind.ESCALATION)
    matching = rows.filter(own | Q(escalation__in=others))
    return list(matching.order_by("escalation", "position"))


def group_rungs(
    steps: Iterable[EscalationStep], severities: Sequence[str], known: Directory, now: datetime
) -> dict[str, list[Rung]]:
    """Group the steps by severity, with what their targets reach, looked up in `known`."""
    found: dict[str, list[Rung]] = defaultdict(list)
    for step in steps:
        found[step.escalation.name].append(Rung(step, reach_from(step.target, known, now)))
    return {severity: found[severity] for severity in severities}


def _explain(found: Target, wanted: list[str]) -> str:
    if found.user is not None and not found.user.is_active:
        return f"the account {found.user.username} is deactivated"
    if not wanted:
        return "not set up"
    kinds = {destination.partition(":")[0] for destination in wanted}
    names = " and ".join(sorted(destinations.describe_destinations(kinds)))
    return f"{names} not configured on this server"
