"""The state of an installation, as consoles of other environments show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from controlplane import __version__
from controlplane.core.attention import services as attention
from controlplane.core.degradation.services import load_degradation
from switches.api.snapshot import read_snapshot

MAX_SWITCHES = 500
MAX_TEXT_LENGTH = 500


@dataclass(frozen=True)
class StoppedSwitch:
    """A switch that is not released; `allow_percent` of its calls pass."""

    id: str
    allow_percent: Decimal
    reason: str
    engaged_at: datetime
    is_overdue: bool

    @property
    def condition(self) -> str:
        if self.is_overdue:
            return "overdue"
        return "ramping" if self.allow_percent else "engaged"

    @property
    def share(self) -> str:
        """The share of calls that pass, such as `25 %`; empty if none does."""
        return f"{self.allow_percent.normalize():f} %" if self.allow_percent else ""


@dataclass(frozen=True)
class EnvironmentState:
    """The state of one installation at `read_at`, by its own clock.

    `stopped` counts all switches that are not released; `switches` has the first of them, by id.
    `attention` is None if some of it can't be read.
    """

    environment: str
    release: str
    read_at: datetime
    version: int
    published_at: datetime
    degradation_level: int
    attention: int | None
    stopped: int
    overdue: int
    switches: tuple[StoppedSwitch, ...]

    @property
    def stopped_text(self) -> str:
        return f"{self.stopped:,} stopped"


def load_state(now: datetime) -> EnvironmentState:
    """Return the state of this installation."""
    version, entries = read_snapshot()
    found = sorted(
        (
            StoppedSwitch(
                id=entry.id,
                allow_percent=entry.allow_percent,
                reason=entry.reason[:MAX_TEXT_LENGTH],
                engaged_at=entry.engaged_at,
                is_overdue=entry.expires_at is not None and entry.expires_at <= now,
            )
            for entry in entries
        ),
        key=lambda switch: switch.id,
    )
    overview = attention.count(now)
    return EnvironmentState(
        environment=settings.ENVIRONMENT_NAME,
        release=__version__,
        read_at=now,
        version=version.version,
        published_at=version.published_at,
        degradation_level=load_degradation().level,
        attention=overview.total if overview.is_complete else None,
        stopped=len(found),
        overdue=sum(switch.is_overdue for switch in found),
        switches=tuple(found[:MAX_SWITCHES]),
    )


def parse_state(document: Any) -> EnvironmentState:
    """Return the state in a response of another console; raise ValueError if it is invalid."""
    try:
        return EnvironmentState(
            environment=_read_text(document, "environment"),
            release=_read_text(document, "release"),
            read_at=_read_time(document, "read_at"),
            version=_read_count(document, "version"),
            published_at=_read_time(document, "published_at"),
            degradation_level=min(_read_count(document, "degradation_level"), 3),
            attention=None if document["attention"] is None else _read_count(document, "attention"),
            stopped=_read_count(document, "stopped"),
            overdue=_read_count(document, "overdue"),
            switches=tuple(map(_parse_switch, document["switches"][:MAX_SWITCHES])),
        )
    except (KeyError, TypeError, ArithmeticError) as error:
        raise ValueError(f"not a state: {error}") from error


def _parse_switch(document: Mapping[str, Any]) -> StoppedSwitch:
    percent = Decimal(str(document["allow_percent"]))
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is not a percentage")
    return StoppedSwitch(
        id=_read_text(document, "id"),
        allow_percent=round(percent, 4),  # Otherwise 1e-999999 has a million digits.
        reason=_read_text(document, "reason"),
        engaged_at=_read_time(document, "engaged_at"),
        is_overdue=document["is_overdue"] is True,
    )


def _read_text(document: Mapping[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is not text")
    return value[:MAX_TEXT_LENGTH]


def _read_count(document: Mapping[str, Any], name: str) -> int:
    value = document[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{name} is not a count")
    return value


def _read_time(document: Mapping[str, Any], name: str) -> datetime:
    return datetime.fromisoformat(_read_text(document, name)).astimezone(UTC)
