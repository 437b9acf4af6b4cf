"""Browser sessions of WebSockets: checked at the handshake, and again while the socket is open."""

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import connection
from django.utils.crypto import constant_time_compare

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.people.session_store import SessionStore
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.http.requests import session_digest
from controlplane.core.live import topics
from controlplane.core.live.subscribers import Session, Subscriber
from controlplane.core.roles import SCOPES_OF, Role

from . import factors, password_changes

_VALID_SESSIONS = """
    SELECT given.key, s.session_data, u.password, u.role
    FROM unnest(%s::text[], %s::bigint[]) AS given (key, user_id)
    JOIN core_browsersession s ON s.session_key = given.key AND s.expire_date > clock_timestamp()
    JOIN core_user u ON u.id = given.user_id AND u.is_active
"""


def find_session(key: str) -> Subscriber:
    """Return the WebSocket subscriber for the signed-in person with this session key.

    Raises Unauthenticated for an ended session, Forbidden if the person first has to choose a new
    password or to set up a required second factor.
    """
    row = BrowserSession.objects.open(db_now()).filter(pk=session_digest(key)).first()
    content = SessionStore().decode(row.session_data) if row else {}
    user_id = str(content.get(SESSION_KEY))
    users = User.objects.filter(pk=user_id if user_id.isdigit() else 0, is_active=True)
    user = users.first()
    if row is None or user is None or not matches_user(content, user.pk, user.password):
        raise Unauthenticated("This session has ended. Sign in again.")
    if password_changes.is_required(user, content):
        raise Forbidden(password_changes.CHOOSE_FIRST)
    if factors.is_required(user) and not factors.has_factor(user):
        raise Forbidden(factors.SET_UP_FIRST)
    found = Session(row.pk, user.pk, user.role, row.session_data, user.password)
    allowed = topics.find_allowed_topics(SCOPES_OF[Role(user.role)])
    return Subscriber(name=f"user:{user.pk}", topics=allowed, session=found)


def find_ended_sessions(sessions: Collection[Session]) -> set[Session]:
    """Return those `sessions` that have ended, or whose person's password or role has changed."""
    unique = set(sessions)
    if not unique:
        return unique
    keys, user_ids = zip(*((session.key, session.user_id) for session in unique), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_VALID_SESSIONS, [list(keys), list(user_ids)])
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
    return {session for session in unique if not _is_valid(session, rows.get(session.key))}


def matches_user(content: Mapping[str, Any], user_id: int, password: str) -> bool:
    """Return True if the session `content` is of this user and began with the present password."""
    user = User(pk=user_id, password=password)
    known = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    value = str(content.get(HASH_SESSION_KEY, ""))
    return (
        str(content.get(SESSION_KEY)) == str(user_id)
        and content.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
        and any(constant_time_compare(value, each) for each in known)
    )


def _is_valid(session: Session, row: tuple[str, str, str] | None) -> bool:
    if row is None:
        return False
    data, password, role = row
    if role != session.role:
        return False  # The allowed topics are looked up again when they reconnect.
    if (data, password) == (session.data, session.password):
        return True
    return matches_user(SessionStore().decode(data), session.user_id, password)
