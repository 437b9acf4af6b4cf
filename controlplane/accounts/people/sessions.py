"""Browser sessions: start, end and failed sign-ins, with their audit rows."""

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
def started(
    *, actor: Actor, now: datetime, request: HttpRequest | None = None, method: str = ""
) -> None:
    """Record a completed sign-in.

    `request` is the one that completed it: its session's lifetime starts, and its browser is
    recorded. `method` is `password`, `passkey`, `sso` or the like.
    """
    if request is not None and isinstance(request.session, SessionStore):
        agent = request.headers.get("User-Agent", "")
        request.session.begin(ip=actor.ip, user_agent=agent, method=method, now=now)
    audit.record(actor=actor, action="session.started", target=f"user:{actor.name}", now=now)


@transaction.atomic
def ended(*, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, action="session.ended", target=f"user:{actor.name}", now=now)


def lock(user: User) -> None:
    """Lock this person's sessions until the transaction ends.

    Lock order: sessions before the audit trail. Call this first if audit rows precede ending them.
    """
    list(BrowserSession.objects.select_for_update().filter(user=user).order_by("pk"))


@transaction.atomic
def end(*, user: User, session_id: str, actor: Actor, now: datetime) -> None:
    """End one session of this person; raises :class:`NotFound` if they have no such one."""
    theirs = BrowserSession.objects.filter(user=user, pk=session_id)
    if not theirs.select_for_update().exists():
        raise NotFound("That session has ended already.")
    _note_ended(user, 1, actor, now, "")
    theirs.delete()


@transaction.atomic
def end_all(
    *, user: User, actor: Actor, now: datetime, but: str | None = None, reason: str = ""
) -> int:
    """End all sessions of this person, except the one with the key `but`; returns how many.

    Their sockets close within seconds. Where none is open nothing is noted.
    """
    theirs = BrowserSession.objects.filter(user=user)
    if but:
        theirs = theirs.exclude(pk=session_digest(but))
    lock(user)
    open_ = theirs.open(now).count()
    if open_:
        _note_ended(user, open_, actor, now, reason)
    theirs.delete()  # Last, because one may be the session of this request.
    return open_


@transaction.atomic
def failed(*, username: str, request_id: str, ip: str, now: datetime) -> None:
    """Record a failed sign-in as `username`.

    Unknown names are not recorded: they may be passwords typed into the wrong field, which the
    trail would keep forever, and a stranger could fill the trail with invented names. The log
    counts those.
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


def _note_ended(user: User, count: int, actor: Actor, now: datetime, reason: str) -> None:
    audit.record(
        actor=actor,
        action="session.revoked",
        target=f"user:{user.username}",
        reason=reason,
        before={"sessions": count},
        now=now,
    )
