"""Confirmations of an upstream, and the time at which they were true. Pure."""

import math
from dataclasses import dataclass
from typing import Any, Self

import orjson


class InvalidConfirmation(ValueError):
    """A confirmation that can't be used; the text is the reason, for the log."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A statement of the upstream that the last bundle is what it holds.

    `at` is the time of the upstream's monotonic clock. `age` and `policies_age` are the seconds
    since the database confirmed the snapshot and the policies, None if that is unknown; `time` is
    the database's time in UNIX seconds. `database` and `redis` tell whether they respond, and
    `read_only` whether the database refuses changes.
    """

    at: float
    age: float | None
    policies_age: float | None
    time: float | None
    database: bool
    read_only: bool
    redis: bool

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the confirmation in an event's data; raise :class:`InvalidConfirmation`."""
        try:
            document = orjson.loads(data)
            age, policies_age = (_read_age(document[name]) for name in ("age", "policies_age"))
            return cls(
                at=_read_number(document["at"]),
                age=age,
                policies_age=policies_age,
                time=None if document["time"] is None else _read_number(document["time"]),
                database=document["database"] is True,
                read_only=document["read_only"] is True,
                redis=document["redis"] is True,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidConfirmation(f"{type(error).__name__}: {error}") from error


class StreamClock:
    """Converts an upstream's monotonic times to own ones that are never later than the truth.

    The first time that a stream sends is at or after the moment at which the relay requested the
    stream. So data that a slow or interrupted connection holds back never looks fresh.
    """

    def __init__(self, requested_at: float) -> None:
        self._requested_at = requested_at
        self._offset: float | None = None
        """Own time minus the upstream's."""

    def convert(self, at: float, now: float) -> float:
        """Return the own monotonic time of the upstream's time `at`, received at `now`."""
        if self._offset is None:
            self._offset = self._requested_at - at
        # The upstream's clock may be faster.
        self._offset = min(self._offset, now - at)
        return self._offset + at


def _read_age(value: Any) -> float | None:
    if value is None:
        return None
    if (age := _read_number(value)) < 0:
        raise ValueError("an age is negative")
    return age


def _read_number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
