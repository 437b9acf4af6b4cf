"""What the audit trail keeps of browser sessions: begun, ended, refused."""

from datetime import datetime

import structlog
from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.people.models import User

log = structlog.get_logger(__name__)


@transaction.atomic
def started(*, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, action="session.started", target=f"user:{actor.name}", now=now)


@transaction.atomic
def ended(*, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, action="session.ended", target=f"user:{actor.name}", now=now)


@transaction.atomic
def failed(*, username: str, request_id: str, ip: str, now: datetime) -> None:
    """Somebody tried to sign in as `username`, and failed.

    A name nobody has is not kept: it may well be a password, typed into the wrong field, and the
    trail never forgets. Nor may a stranger make it grow with invented names: the log has those.
    """
    if not User.objects.filter(username=username).exists():
        log.warning("session.failed", username="?", ip=ip)
        return
    audit.record(
        actor=Actor(type="system", name="sign-in", request_id=request_id, ip=ip),
        action="session.failed",
        target=f"user:{username}",
        now=now,
    )
