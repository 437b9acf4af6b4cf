"""Django session store in the table of browser sessions, with a maximum age and an idle limit.

A session ends `SESSION_HOURS` after it began, or `SESSION_IDLE_MINUTES` after the last activity if
that is earlier.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.contrib.sessions.exceptions import SessionInterrupted
from django.db import connection
from django.db.models import F
from django.db.models.functions import Least
from django.utils import timezone

from controlplane.accounts.models.people import BrowserSession
from controlplane.core.http.requests import session_digest

SEEN_EVERY = timedelta(minutes=1)
MAX_AGENT_LENGTH = 300
# Run by every request of a browser; Django's ORM would take longer to compile it than to run it.
_LOAD = (
    "SELECT user_id, last_seen_at, session_data FROM core_browsersession"
    " WHERE session_key = %s AND expire_date > %s"
)
KEPT_FIELDS = ("started_at", "last_seen_at", "expire_date", "ip", "user_agent", "method")


class SessionStore(SessionBase):
    """A session store keyed by SHA-256 of session keys; only `record_activity` extends sessions."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        self._begun: dict[str, Any] = {}
        self._last_seen_at: datetime | None = None

    def begin(self, *, ip: str, user_agent: str, method: str, now: datetime) -> None:
        """Set the session's start time and browser details, which the next :meth:`save` stores."""
        self._begun = {
            **_build_times(now),
            "ip": ip[:45],
            "user_agent": user_agent[:MAX_AGENT_LENGTH],
            "method": method,
        }
        self.modified = True

    def record_activity(self, now: datetime) -> None:
        """Extend the session, at most once a minute."""
        last = self._last_seen_at
        if last is None or now - last < SEEN_EVERY or self.session_key is None:
            return
        self._last_seen_at = now
        ends = Least(F("started_at") + _get_max_age(), now + _get_max_idle())
        self._rows().filter(expire_date__gt=now).update(last_seen_at=now, expire_date=ends)

    def load(self) -> dict[str, Any]:
        with connection.cursor() as cursor:
            cursor.execute(_LOAD, [session_digest(self.session_key or ""), timezone.now()])
            row = cursor.fetchone()
        if row is None:
            self._session_key = None
            return {}
        user_id, last_seen_at, data = row
        if user_id is not None:
            self._last_seen_at = last_seen_at
        content: dict[str, Any] = self.decode(data)
        return content

    def exists(self, session_key: str) -> bool:
        return BrowserSession.objects.filter(session_key=session_digest(session_key)).exists()

    def create(self) -> None:
        self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
        self.save(must_create=True)
        self.modified = True

    def save(self, must_create: bool = False) -> None:
        """Save the session's content. Raise :class:`UpdateError` if the session has ended."""
        if self.session_key is None:
            self.create()
            return
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]
        written = {"session_data": self.encode(data), "user_id": data.get(SESSION_KEY)}
        if must_create:
            values = {**_build_times(timezone.now()), **written, **self._begun}
            BrowserSession.objects.create(session_key=session_digest(self.session_key), **values)
        elif not self._rows().update(**written, **self._begun):
            raise UpdateError
        if data:
            self._begun = {}

    def cycle_key(self) -> None:
        """Change the session's key; raise :class:`SessionInterrupted` if the session has ended."""
        values = self._rows().filter(user__isnull=False).values(*KEPT_FIELDS).first()
        if SESSION_KEY in self and values is None:
            raise SessionInterrupted("The session has ended.")
        super().cycle_key()
        if values and not self._begun:
            self._rows().update(**values)

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            BrowserSession.objects.filter(session_key=session_digest(key)).delete()

    @classmethod
    def clear_expired(cls) -> None:
        BrowserSession.objects.filter(expire_date__lt=timezone.now()).delete()

    def _rows(self) -> Any:
        return BrowserSession.objects.filter(session_key=session_digest(self.session_key or ""))


def is_at_max_age(session: BrowserSession) -> bool:
    """Return True if the session ends at its maximum age, so that activity can't extend it."""
    return session.expire_date >= session.started_at + _get_max_age()


def _build_times(now: datetime) -> dict[str, datetime]:
    ends = now + min(_get_max_age(), _get_max_idle())
    return {"started_at": now, "last_seen_at": now, "expire_date": ends}


def _get_max_age() -> timedelta:
    return timedelta(minutes=settings.ENTRY.session_minutes)


def _get_max_idle() -> timedelta:
    return timedelta(minutes=settings.ENTRY.idle_minutes)
