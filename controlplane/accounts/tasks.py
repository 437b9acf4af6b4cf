"""Periodic tasks of accounts, which delete old rows."""

from datetime import datetime

from controlplane.core import ticks
from controlplane.core.retention import purge

from .authentication import retention_rules as rules


@ticks.tick("sessions.purge", seconds=24 * 3600, queue="housekeeping")
def purge_sessions(now: datetime) -> int:
    """Delete expired sessions, also those in Django's own table, and old e-mail confirmations."""
    return purge([rules.SESSIONS, rules.OLD_SESSIONS, rules.CONFIRMATIONS], now)


@ticks.tick("sign_ins.purge", seconds=24 * 3600, queue="housekeeping")
def purge_sign_ins(now: datetime) -> int:
    """Delete old sign-in attempts and old entries of Django's admin log."""
    return purge([*rules.SIGN_INS, rules.ADMIN_LOG], now)
