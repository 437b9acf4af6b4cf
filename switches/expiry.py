"""Parsing and validation of an episode's expiry and expiry policy.

All times are timezone-aware.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from controlplane.core import durations
from controlplane.core.errors import InvalidInput
from switches.scopes import HOLD, RAMP, RELEASE, SCOPES, default_on_expiry

PERMANENT = "permanent"
MIN_DURATION = timedelta(seconds=1)
MAX_DURATION = timedelta(days=30)
UNTIL_APPROVED = timedelta(hours=24)
"""Duration of a permanent engage until it is approved."""
RECONFIRM_EVERY = timedelta(days=7)
"""Time after which a permanent episode has to be re-confirmed."""

OFFERED_DURATIONS = {"1h": "1 hour", "4h": "4 hours", "24h": "24 hours", "7d": "1 week"}
"""The durations that forms offer, with their names; the API accepts any up to `MAX_DURATION`."""

ON_EXPIRY = (HOLD, RAMP, RELEASE)

# RFC 3339; Python's parser accepts more (week dates, no seconds, no offset).
_RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_TIME_EXAMPLE = "2026-11-21T02:10:00Z or 2026-11-21T11:10:00+09:00"


@dataclass(frozen=True, slots=True)
class Expiry:
    """The end of an episode (UTC) and its expiry policy."""

    expires_at: datetime
    permanent_requested: bool
    on_expiry: str

    def is_shorter_than(self, other: "Expiry") -> bool:
        return other.permanent_requested or self.expires_at < other.expires_at


def plan_expiry(
    *,
    scope: str,
    expires_in: str | None = None,
    expires_at: str | None = None,
    on_expiry: str | None = None,
    now: datetime,
) -> Expiry:
    """Return the expiry of a new episode, or raise :class:`InvalidInput` with every invalid field.

    Exactly one of `expires_in` (`24h`, `permanent`) and `expires_at` (RFC 3339) must be given;
    empty texts count as absent.
    """
    policy = on_expiry or default_on_expiry(scope)
    problem = _policy_problem(scope, policy)
    errors = {"on_expiry": [problem]} if problem else {}
    try:
        expires_in, expires_at = ((text or "").strip() or None for text in (expires_in, expires_at))
        ends, permanent = _parse_expiry(expires_in, expires_at, now)
    except InvalidInput as error:
        raise InvalidInput({**errors, **error.errors}) from error
    if errors:
        raise InvalidInput(errors)
    return Expiry(ends, permanent, policy)


def list_offers(start: datetime, now: datetime) -> list[tuple[str, str, datetime]]:
    """Return each offered duration, its name, and its end if it begins at `start`.

    Ends later than the maximum from `now` are left out.
    """
    ends = [(text, name, start + durations.parse(text)) for text, name in OFFERED_DURATIONS.items()]
    return [offer for offer in ends if offer[2] <= now + MAX_DURATION]


def plan_extension(*, expires_in: str, present: datetime | None, now: datetime) -> datetime:
    """Return the new expiry (UTC), `expires_in` from now.

    Raise :class:`InvalidInput` for an invalid duration, or a new expiry not later than `present`,
    the present one.
    """
    ends = _add_duration(expires_in, now)
    if present is not None and ends <= present:
        left = durations.format_readable(present - now)
        raise _field_error(
            "expires_in",
            f"Must end after the current expiry, {_format_time(present)}. Durations count from"
            f" now, and this one ends at {_format_time(ends)}. Choose more than {left}.",
        )
    return ends


def _policy_problem(scope: str, policy: str) -> str | None:
    if policy not in ON_EXPIRY:
        return f"Must be one of {', '.join(ON_EXPIRY)}; leave it out for the scope's default."
    found = SCOPES.get(scope)
    if found is None or policy in found.on_expiry:
        return None
    if found.stops_everything:
        return (
            f"The {scope} switch can't {policy} by itself: two people must release it. Use hold, or"
            " omit the field."
        )
    return f"For {scope} it must be one of {', '.join(found.on_expiry)}."


def _parse_expiry(
    expires_in: str | None, expires_at: str | None, now: datetime
) -> tuple[datetime, bool]:
    if expires_in is not None and expires_at is not None:
        raise _field_error("expires_at", "Give either expires_in or expires_at, not both.")
    if PERMANENT in (expires_in, expires_at):
        return now.astimezone(UTC) + UNTIL_APPROVED, True
    if expires_in is not None:
        return _add_duration(expires_in, now), False
    if expires_at is not None:
        return _parse_end(expires_at, now), False
    raise _field_error(
        "expires_in",
        "An expiry is required: expires_in (24h, 7d or permanent) or expires_at (a time).",
    )


def _add_duration(expires_in: str, now: datetime) -> datetime:
    try:
        duration = durations.parse(expires_in)
    except ValueError as error:
        raise _field_error("expires_in", str(error)) from error
    if duration > MAX_DURATION:
        raise _field_error("expires_in", _TOO_LATE)
    return now.astimezone(UTC) + duration


def _parse_end(expires_at: str, now: datetime) -> datetime:
    ends = _parse_time(expires_at)
    if ends <= now:
        raise _field_error(
            "expires_at", f"{_format_time(ends)} is in the past. It is now {_format_time(now)}."
        )
    if ends - now < MIN_DURATION:
        raise _field_error("expires_at", "Must be at least 1 s from now.")
    if ends - now > MAX_DURATION:
        raise _field_error("expires_at", _TOO_LATE)
    return ends


_TOO_LATE = (
    f"Must be at most {MAX_DURATION.days} days from now. Extend it later, or request a permanent"
    " engagement."
)


def _parse_time(text: str) -> datetime:
    written = _RFC_3339.fullmatch(text)
    if written is None:
        raise _field_error("expires_at", f"Use RFC 3339, for example {_TIME_EXAMPLE}.")
    date, time, fraction, offset = written.groups()
    if offset is None:
        raise _field_error(
            "expires_at",
            f"The time needs a UTC offset. Add Z or an offset: {_TIME_EXAMPLE}.",
        )
    microseconds = (fraction or "0")[:6].ljust(6, "0")
    offset = "+00:00" if offset in "Zz" else offset
    try:
        return datetime.fromisoformat(f"{date}T{time}.{microseconds}{offset}").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _field_error(
            "expires_at", f"This time doesn't exist. Example: {_TIME_EXAMPLE}."
        ) from error


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _field_error(field: str, message: str) -> InvalidInput:
    return InvalidInput({field: [message]})
