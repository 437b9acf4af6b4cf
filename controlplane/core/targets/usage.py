"""What leads to a target: steps, rotations and routes, in words."""

from collections import defaultdict
from collections.abc import Sequence

from controlplane.core.targets.models import EscalationStep, OnCallMember, Route, Target


def used_by(targets: Sequence[Target]) -> dict[int, list[str]]:
    """What leads to each of them, by its id; in three queries however many they are."""
    found: dict[int, dict[str, None]] = defaultdict(dict)  # Keeps the order, and each only once.
    steps = EscalationStep.objects.filter(target__in=targets).select_related("escalation")
    for step in steps.order_by("after_minutes", "id"):
        found[step.target_id][f"{step.escalation.name} after {step.after_minutes} min"] = None
    members = OnCallMember.objects.filter(person__in=targets).select_related("rotation")
    for member in members.order_by("id"):
        found[member.person_id][f"the rotation {member.rotation.name}"] = None
    for route in Route.objects.filter(target__in=targets).order_by("id"):
        found[route.target_id][f"the route for {route.event}"] = None
    return {target.pk: list(found[target.pk]) for target in targets}
