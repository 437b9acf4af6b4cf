"""Many targets of every kind, with routes to all of them."""

from datetime import datetime

from controlplane.notify.models.targets import EscalationStep, OnCallMember, Route, Target


def many(count: int, now: datetime, prefix: str = "many") -> None:
    """Create `count` each of people, rotations of two, webhooks and escalations, with routes."""

    def create_targets(kind: str, **more: str) -> list[Target]:
        return Target.objects.bulk_create(
            Target(name=f"{prefix} {kind} {number:04}", kind=kind, created_at=now, **more)
            for number in range(count)
        )

    people = create_targets("person", email="somebody@example.org")
    rotations = create_targets("on_call")
    hooks = create_targets("channel", address="webhook", webhook_url="https://1.1.1.1/x")
    ladders = create_targets("escalation")
    OnCallMember.objects.bulk_create(
        OnCallMember(rotation=rotation, position=place, person=people[(number + place) % count])
        for number, rotation in enumerate(rotations)
        for place in (0, 1)
    )
    EscalationStep.objects.bulk_create(
        EscalationStep(escalation=ladder, position=0, after_minutes=0, target=rotation)
        for ladder, rotation in zip(ladders, rotations, strict=True)
    )
    Route.objects.bulk_create(
        Route(event="switch.*", target=target, created_at=now)
        for target in (*people, *rotations, *hooks, *ladders)
    )
