"""Initial notification targets, created by a migration: escalation steps, still without people."""

from datetime import datetime
from typing import Any

ON_CALL, TEAM, LEAD, CTO = "on-call", "responsible-team", "team-lead", "cto"
SLACK = "slack"

TARGETS = (
    (ON_CALL, "on_call", "The engineer on duty."),
    (TEAM, "channel", "The team that owns what is affected."),
    (LEAD, "person", "The team lead."),
    (CTO, "person", "The CTO."),
)
ESCALATIONS: tuple[tuple[str, str, tuple[tuple[int, str], ...]], ...] = (
    (
        "critical",
        "Answer within 5 minutes; after 15 the team lead, after 30 the CTO.",
        ((0, ON_CALL), (5, ON_CALL), (15, LEAD), (30, CTO)),
    ),
    (
        "warning",
        "Answer within 30 minutes; after 2 hours the team lead.",
        ((0, TEAM), (30, TEAM), (120, LEAD)),
    ),
    ("info", "Answer on the next working day.", ((0, TEAM),)),
)


def create_targets(apps: Any, now: datetime) -> None:
    """Create the missing initial notification targets; `apps` is the migration's app registry."""
    target = apps.get_model("core", "Target")
    step = apps.get_model("core", "EscalationStep")
    route = apps.get_model("core", "Route")
    targets = {}
    for name, kind, description in TARGETS:
        targets[name], _ = target.objects.get_or_create(
            name=name, defaults={"kind": kind, "description": description, "created_at": now}
        )
    for name, description, steps in ESCALATIONS:
        escalation, new = target.objects.get_or_create(
            name=name,
            defaults={"kind": "escalation", "description": description, "created_at": now},
        )
        if new:
            for position, (minutes, target_name) in enumerate(steps):
                step.objects.create(
                    escalation=escalation,
                    position=position,
                    after_minutes=minutes,
                    target=targets[target_name],
                )
    slack, new = target.objects.get_or_create(
        name=SLACK,
        defaults={
            "kind": "channel",
            "address": SLACK,
            "description": "The channel of `SLACK_CHANNEL` or the webhook of `SLACK_WEBHOOK_URL`.",
            "created_at": now,
        },
    )
    if new:
        route.objects.create(event="*", target=slack, created_at=now)
