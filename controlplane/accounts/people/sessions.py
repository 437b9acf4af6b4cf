"""Services of browser sessions: record sign-ins, end sessions, write their audit entries."""

from datetime import datetime

import structlog
from django.db import transaction
from django.http import HttpRequest

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import NotFound
from controlplane.core.http.requests import session_digest

from .session_store import SessionStore

log = structlog.get_logger(__name__)


@transaction.atomic
def record_sign_in(
    *, actor: Actor, now: datetime, request: HttpRequest | None = None, method: str = ""
) -> None:
    """Record a completed sign-in, and begin the session of `request`."""
    if request is not None and isinstance(request.session, SessionStore):
        agent = request.headers.get("User-Agent", "")
        request.session.begin(ip=actor.ip, user_agent=agent, method=method, now=now)
    audit.record(actor=actor, action="session.started", target=f"user:{actor.name}", now=now)


@transaction.atomic
def record_sign_out(*, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, action="session.ended", target=f"user:{actor.name}", now=now)


def lock_sessions(user: User) -> None:
    """Lock a person's sessions until the transaction ends; call before writing audit entries."""
    list(BrowserSession.objects.select_for_update().filter(user=user).order_by("pk"))


@transaction.atomic
def end_session(*, user: User, session_id: str, actor: Actor, now: datetime) -> None:
    """End one session of a person. Raise :class:`NotFound` if they have no such session."""
    theirs = BrowserSession.objects.filter(user=user, pk=session_id)
    if not theirs.select_for_update().exists():
        raise NotFound("This session has already ended.")
    _record_end(user, 1, actor, now, "")
    theirs.delete()


@transaction.atomic
def end_all(
    *, user: User, actor: Actor, now: datetime, but: str | None = None, reason: str = ""
) -> int:
    """End a person's sessions, except the one with the key `but`; return how many were open."""
    theirs = BrowserSession.objects.filter(user=user)
    if but:
        theirs = theirs.exclude(pk=session_digest(but))
    lock_sessions(user)
    open_ = theirs.open(now).count()
    if open_:
        _record_end(user, open_, actor, now, reason)
    theirs.delete()  # Last, as it may include this request's session.
    return open_


@transaction.atomic
def record_failure(*, username: str, request_id: str, ip: str, now: datetime) -> None:
    """Record a failed sign-in in the audit trail; if the user name is unknown, only in the log.

    The log doesn't get the name, which may be a password typed into the wrong field.
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


def _record_end(user: User, count: int, actor: Actor, now: datetime, reason: str) -> None:
    audit.record(
        actor=actor,
        action="session.revoked",
        target=f"user:{user.username}",
        reason=reason,
        before={"sessions": count},
        now=now,
    )
