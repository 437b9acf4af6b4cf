"""Verification of one-time codes, from an authenticator app or the recovery codes."""

from datetime import datetime, timedelta

import structlog
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from cryptography.fernet import InvalidToken
from django.db import transaction
from django.utils.crypto import constant_time_compare

from controlplane.accounts.models.people import User
from controlplane.core import encryption
from controlplane.core.errors import TooManyRequests

PERIOD_SECONDS = 30
DRIFT = 1  # Periods by which a phone's clock may be off.
MAX_WRONG = 20
WRONG_WITHIN = timedelta(minutes=15)

Type = Authenticator.Type
log = structlog.get_logger(__name__)


@transaction.atomic
def check_code(user: User, text: str, now: datetime) -> str:
    """Return the type of a valid code, `totp` or `recovery_codes`; "" for a wrong one.

    Raises :class:`TooManyRequests` after too many wrong codes.
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
    wrong = _list_recent_failures(keeper, now)
    code = "".join(text.split())[:20]
    kind = _check_code(rows, code, now) if code.isascii() and code.isdigit() else ""
    if not kind:
        keeper.data["wrong"] = [*wrong, now.timestamp()]
        keeper.save(update_fields=["data"])
    return kind


@transaction.atomic
def reset_failures(user: User) -> int:
    """Reset a person's count of failed codes to 0, and return the previous count."""
    failures = 0
    for row in Authenticator.objects.select_for_update().filter(user=user).order_by("pk"):
        if wrong := row.data.pop("wrong", []):
            row.save(update_fields=["data"])
            failures += len(wrong)
    return failures


def matches_secret(secret: str, text: str, now: datetime) -> bool:
    """Return True if the code `text` fits the `secret` of an authenticator app being set up."""
    return _find_counter(secret, "".join(text.split())[:20], now) is not None


def _check_code(rows: dict[str, Authenticator], code: str, now: datetime) -> str:
    try:
        if Type.TOTP in rows and _check_totp(rows[Type.TOTP], code, now):
            return str(Type.TOTP.value)
        codes = rows.get(Type.RECOVERY_CODES)
        if codes and RecoveryCodes(codes).validate_code(code):
            codes.record_usage()
            return str(Type.RECOVERY_CODES.value)
    except InvalidToken:
        log.error("factor.unreadable", user=rows[next(iter(rows))].user_id)
    return ""


def _check_totp(row: Authenticator, code: str, now: datetime) -> bool:
    counter = _find_counter(
        encryption.decrypt(row.data["secret"], encryption.SECOND_FACTORS), code, now
    )
    if counter is None or counter <= row.data.get("counter", 0):
        return False  # The code was used before, or is older than a used one.
    row.data["counter"] = counter
    row.last_used_at = now
    row.save(update_fields=["data", "last_used_at"])
    return True


def _find_counter(secret: str, code: str, now: datetime) -> int | None:
    present = int(now.timestamp()) // PERIOD_SECONDS
    match = None
    for counter in range(present - DRIFT, present + DRIFT + 1):
        if constant_time_compare(format_hotp_value(hotp_value(secret, counter)), code):
            match = counter
    return match


def _list_recent_failures(keeper: Authenticator, now: datetime) -> list[float]:
    since = (now - WRONG_WITHIN).timestamp()
    wrong = [float(at) for at in keeper.data.get("wrong", []) if at > since]
    if len(wrong) >= MAX_WRONG:
        seconds = int(wrong[0] - since) + 1
        raise TooManyRequests(
            "Too many wrong codes. Wait, use a passkey, or ask an admin to reset your "
            "second factor.",
            retry_after=seconds,
        )
    return wrong
