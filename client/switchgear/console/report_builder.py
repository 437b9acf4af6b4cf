"""What a report says: how this process stands since it began. No I/O."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from switchgear.clock import ConsoleClock
from switchgear.evaluation.snapshot_store import Memory
from switchgear.settings import Settings
from switchgear.sli import Indicators

MAX_UNIX_SECONDS = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()

ReportSource = Callable[[], Mapping[str, Any]]
"""Gives some fields of a report as they stand now: counts since the process began, lists whole. So
a report that is lost costs nothing, and one that comes twice adds nothing."""


class ConfirmedSource(Protocol):
    """A source that has to know what was heard."""

    def __call__(self) -> Mapping[str, Any]: ...

    def confirm_delivery(self) -> bool:
        """The console has taken in the latest report; whether there is more to be told."""
        ...


class ReportBuilder:
    """The reports of one boot, in order. Times are by the console's clock."""

    def __init__(
        self,
        settings: Settings,
        clock: ConsoleClock,
        sources: Sequence[ReportSource],
        resilience: ConfirmedSource | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._sources: list[ReportSource] = (
            [*sources] if resilience is None else [*sources, resilience]
        )
        self._resilience = resilience
        self._boot = str(uuid.uuid4())
        self._began = clock.time.monotonic()
        self._seq = 0

    def build_next(self) -> bytes:
        """The next one, in JSON. Not to be called by two threads at once."""
        self._seq += 1
        clock = self._clock
        body: dict[str, Any] = {
            "service": self._settings.service,
            "instance": self._settings.instance,
            "boot": self._boot,
            "started_at": format_time(clock.at(self._began)),
            "seq": self._seq,
            "sent_at": format_time(clock.at(clock.time.monotonic())),
        }
        for source in self._sources:
            body.update(source())
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    def confirm_delivery(self) -> bool:
        """The console has taken in the latest one; whether there is more to be told at once."""
        return self._resilience is not None and self._resilience.confirm_delivery()


def make_check_source(memory: Memory) -> ReportSource:
    """Which version is in force, and how often each switch was asked for."""

    def found() -> dict[str, Any]:
        counted = memory.counted()
        checks = [
            {"switch": switch, "allowed": allowed, "blocked": blocked}
            for switch, (allowed, blocked) in counted.items()
        ]
        snapshot = memory.snapshot
        applied = {} if snapshot is None else {"applied_version": snapshot.version}
        return {"checks": checks, **applied}

    return found


def make_sli_source(indicators: Indicators) -> ReportSource:
    """Good events of all events, by SLO."""

    def found() -> dict[str, Any]:
        counted = indicators.counted()
        rows = [
            {"slo": name, "good": good, "total": total} for name, (good, total) in counted.items()
        ]
        return {"sli": rows}

    return found


def format_time(seconds: float) -> str:
    """In RFC 3339, which ends with the year 9999; a console's clock may be anywhere."""
    seconds = min(max(seconds, 0.0), MAX_UNIX_SECONDS)
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
