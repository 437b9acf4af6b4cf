"""Uses of a target: the steps, rotations, routes and teams that refer to it."""

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Q

from controlplane.accounts.models.people import User
from controlplane.accounts.people.deactivation import Duties
from controlplane.notify.models.targets import EscalationStep, OnCallMember, Route, Target
from controlplane.notify.models.teams import TeamContact


def list_uses(targets: Sequence[Target]) -> dict[int, list[str]]:
    """Return texts that describe the uses of each target, by target id, in four queries."""
    found: dict[int, dict[str, None]] = defaultdict(dict)  # Used as ordered sets.
    steps = EscalationStep.objects.filter(target__in=targets).select_related("escalation")
    for step in steps.order_by("after_minutes", "id"):
        found[step.target_id][f"{step.escalation.name} after {step.after_minutes} min"] = None
    members = OnCallMember.objects.filter(person__in=targets).select_related("rotation")
    for member in members.order_by("id"):
        found[member.person_id][f"the rotation {member.rotation.name}"] = None
    for route in Route.objects.filter(target__in=targets).order_by("id"):
        found[route.target_id][f"the route for {route.event}"] = None
    contacts = TeamContact.objects.filter(target__in=targets).select_related("team")
    for contact in contacts.order_by("team__name", "id"):
        found[contact.target_id][f"the team {contact.team.name}"] = None
    return {target.pk: list(found[target.pk]) for target in targets}


def duties_of(user: User, most: int) -> Duties:
    """Return the notification settings that depend on a person: uses of the person's targets.

    Other targets with the person's e-mail address or Slack id are returned by name. At most `most`
    targets of each kind are read.
    """
    named = list(Target.objects.filter(kind=Target.Kind.PERSON, user=user)[:most])
    uses = list_uses(named)
    # Targets with the person's address still notify them after the account is deactivated.
    theirs = Q(pk__in=())
    if user.email:
        theirs |= Q(email__iexact=user.email) | Q(address__iexact=f"email:{user.email}")
    if user.slack_user_id:
        theirs |= Q(slack_user_id=user.slack_user_id) | Q(address=f"slack:{user.slack_user_id}")
    addressed = Target.objects.filter(theirs).exclude(user=user).order_by("name")
    return Duties(
        duties=list(dict.fromkeys(words for target in named for words in uses[target.pk])),
        addressed=list(addressed.values_list("name", flat=True)[:most]),
    )
