"""The initial notification targets: the escalation matrix, with nobody assigned.

Unassigned targets appear under *Needs attention*. Plain data, for the migration and for tests that
empty the tables.
"""

from datetime import datetime
from typing import Any

ON_CALL, TEAM, LEAD, CTO = "on-call", "responsible-team", "team-lead", "cto"
SLACK = "slack"

PLACES = (
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


def install(apps: Any, now: datetime) -> None:
    """Write the defaults that are missing; `apps` is Django's registry or a migration's."""
    target = apps.get_model("core", "Target")
    step = apps.get_model("core", "EscalationStep")
    route = apps.get_model("core", "Route")
    found = {}
    for name, kind, description in PLACES:
        found[name], _ = target.objects.get_or_create(
            name=name, defaults={"kind": kind, "description": description, "created_at": now}
        )
    for name, description, steps in ESCALATIONS:
        escalation, new = target.objects.get_or_create(
            name=name,
            defaults={"kind": "escalation", "description": description, "created_at": now},
        )
        if new:
            for position, (minutes, whom) in enumerate(steps):
                step.objects.create(
                    escalation=escalation,
                    position=position,
                    after_minutes=minutes,
                    target=found[whom],
                )
    slack, new = target.objects.get_or_create(
        name=SLACK,
        defaults={
            "kind": "channel",
            "address": SLACK,
            "description": "The channel or webhook that the environment names.",
            "created_at": now,
        },
    )
    if new:
        route.objects.create(event="*", target=slack, created_at=now)
