"""Lookup of targets' destinations; rotations' members and escalation steps are read before."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.clock import load_time_zone
from controlplane.notify.models.targets import EscalationStep, OnCallMember, Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS

from .on_call_rotation import USUAL_DAYS, DutyTurn, find_turn

MAX_DESTINATION_LENGTH = 120  # The length of the outbox's column.


@dataclass(frozen=True)
class Directory:
    """The members of rotations and the steps of escalations, in order, by their target's id."""

    members: Mapping[int, Sequence[Target]]
    steps: Mapping[int, Sequence[EscalationStep]]

    def destinations(self, target: Target, now: datetime) -> list[str]:
        found = self.behind(target, now)
        if found is None:
            return []
        if found.kind != Target.Kind.CHANNEL:
            return _person_destinations(found)
        transport = destinations.transport_of(found)
        destination = transport.destination_of(found) if transport else ""
        return [destination] if destination else []

    def unique(self, targets: Iterable[Target], now: datetime) -> list[str]:
        found = (one for target in targets for one in self.destinations(target, now))
        return list(dict.fromkeys(found))

    def behind(self, target: Target, now: datetime) -> Target | None:
        """Return the person or channel that a target stands for at `now`; None if there is none.

        A rotation stands for its member on duty, an escalation for the target of its first step.
        """
        if target.kind == Target.Kind.ON_CALL:
            duty = self.on_duty(target, now)
            return duty and duty[0]
        if target.kind != Target.Kind.ESCALATION:
            return target
        steps = self.steps.get(target.pk, ())
        if not steps or steps[0].target.kind == Target.Kind.ESCALATION:
            return None
        return self.behind(steps[0].target, now)

    def on_duty(self, rotation: Target, now: datetime) -> tuple[Target, DutyTurn] | None:
        """Return the rotation's person on duty and their turn; None without members."""
        people = self.members.get(rotation.pk, ())
        turn = find_turn(
            len(people),
            rotation.rotation_days or USUAL_DAYS,
            rotation.rotation_starts_at or rotation.created_at,
            load_time_zone(rotation.time_zone),
            now,
        )
        return (people[turn.member], turn) if turn else None


def read_directory(targets: Iterable[Target]) -> Directory:
    """Return the members and steps of these targets, read in at most two queries.

    The targets must be fetched with `select_related("user")`.
    """
    wanted = list(targets)
    steps: dict[int, list[EscalationStep]] = defaultdict(list)
    escalations = [one.pk for one in wanted if one.kind == Target.Kind.ESCALATION]
    step_rows = EscalationStep.objects.select_related("target__user").order_by("position")
    for step in step_rows.filter(escalation__in=escalations):
        steps[step.escalation_id].append(step)
        wanted.append(step.target)
    members: dict[int, list[Target]] = defaultdict(list)
    rotations = {one.pk for one in wanted if one.kind == Target.Kind.ON_CALL}
    member_rows = OnCallMember.objects.select_related("person__user").order_by("position")
    for row in member_rows.filter(rotation__in=rotations):
        members[row.rotation_id].append(row.person)
    return Directory(members, steps)


def _person_destinations(person: Target) -> list[str]:
    """Return a person's destinations; none if the account is deactivated."""
    account = person.user
    if account is not None and not account.is_active:
        return []
    found = []
    for transport in TRANSPORTS.values():
        if transport.check_person is None:
            continue
        column = transport.person_column
        address = getattr(person, column) or (getattr(account, column) if account else "")
        if address:
            found.append(f"{transport.key}:{address}")
    return [destination for destination in found if len(destination) <= MAX_DESTINATION_LENGTH]
