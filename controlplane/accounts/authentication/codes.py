"""Checks codes: from an authenticator app, or recovery codes. Each works once.

Used codes and failed guesses are stored with the person's second factor, under its lock, so that a
reused code is rejected without a cache.
"""

from datetime import datetime, timedelta

import structlog
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.db import transaction
from django.utils.crypto import constant_time_compare

from controlplane.accounts.models.people import User
from controlplane.core import encryption
from controlplane.core.errors import TooManyRequests

PERIOD = 30  # Seconds.
DRIFT = 1  # Periods by which a phone's clock may be off.
MAX_WRONG = 20
WRONG_WITHIN = timedelta(minutes=15)

Type = Authenticator.Type
log = structlog.get_logger(__name__)


@transaction.atomic
def check(user: User, text: str, now: datetime) -> str:
    """Return the kind of code this is (`totp`, `recovery_codes`); empty if it is invalid.

    Raises :class:`TooManyRequests` after too many invalid ones, from any address.
    """
    rows = {
        row.type: row
        for row in Authenticator.objects.select_for_update()
        .filter(user=user, type__in=(Type.TOTP, Type.RECOVERY_CODES))
        .order_by("pk")
    }
    keeper = rows.get(Type.TOTP) or rows.get(Type.RECOVERY_CODES)
    if keeper is None:
        return ""
    wrong = _lately(keeper, now)
    code = "".join(text.split())[:20]
    kind = _opens(rows, code, now) if code.isascii() and code.isdigit() else ""
    if not kind:
        keeper.data["wrong"] = [*wrong, now.timestamp()]
        keeper.save(update_fields=["data"])
    return kind


@transaction.atomic
def forgive(user: User) -> int:
    """Reset a person's failed codes and return their number."""
    forgotten = 0
    for row in Authenticator.objects.select_for_update().filter(user=user).order_by("pk"):
        if wrong := row.data.pop("wrong", []):
            row.save(update_fields=["data"])
            forgotten += len(wrong)
    return forgotten


def is_code_of(secret: str, text: str, now: datetime) -> bool:
    """Return True if a code matches a secret that is being set up."""
    return _counter(secret, "".join(text.split())[:20], now) is not None


def _opens(rows: dict[str, Authenticator], code: str, now: datetime) -> str:
    try:
        if Type.TOTP in rows and _opens_totp(rows[Type.TOTP], code, now):
            return str(Type.TOTP.value)
        codes = rows.get(Type.RECOVERY_CODES)
        if codes and RecoveryCodes(codes).validate_code(code):
            codes.record_usage()
            return str(Type.RECOVERY_CODES.value)
    except encryption.InvalidToken:
        log.error("factor.unreadable", user=rows[next(iter(rows))].user_id)
    return ""


def _opens_totp(row: Authenticator, code: str, now: datetime) -> bool:
    counter = _counter(encryption.decrypt(row.data["secret"], encryption.SECOND_FACTORS), code, now)
    if counter is None or counter <= row.data.get("counter", 0):
        return False  # Also a code that was used, or one from before it.
    row.data["counter"] = counter
    row.last_used_at = now
    row.save(update_fields=["data", "last_used_at"])
    return True


def _counter(secret: str, code: str, now: datetime) -> int | None:
    present = int(now.timestamp()) // PERIOD
    found = None
    for counter in range(present - DRIFT, present + DRIFT + 1):
        if constant_time_compare(format_hotp_value(hotp_value(secret, counter)), code):
            found = counter
    return found


def _lately(keeper: Authenticator, now: datetime) -> list[float]:
    since = (now - WRONG_WITHIN).timestamp()
    wrong = [float(at) for at in keeper.data.get("wrong", []) if at > since]
    if len(wrong) >= MAX_WRONG:
        seconds = int(wrong[0] - since) + 1
        raise TooManyRequests(
            "There were too many wrong codes. Wait, use a passkey, or ask an admin to reset your "
            "second factor.",
            retry_after=seconds,
        )
    return wrong
