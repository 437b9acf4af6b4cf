"""Periodic tasks (ticks) of accounts."""

from datetime import datetime

from controlplane.core import ticks
from controlplane.core.retention import purge

from .authentication.retention_rules import (
    ADMIN_LOG,
    CONFIRMATIONS,
    OLD_SESSIONS,
    SESSIONS,
    SIGN_INS,
)


@ticks.tick("sessions.purge", seconds=24 * 3600, queue="housekeeping")
def purge_sessions(now: datetime) -> int:
    """Delete expired sessions, including those in Django's own table, and e-mail confirmations."""
    return purge([SESSIONS, OLD_SESSIONS, CONFIRMATIONS], now)


@ticks.tick("sign_ins.purge", seconds=24 * 3600, queue="housekeeping")
def purge_sign_ins(now: datetime) -> int:
    """Delete old sign-in attempts and old entries of Django's admin log."""
    return purge([*SIGN_INS, ADMIN_LOG], now)
