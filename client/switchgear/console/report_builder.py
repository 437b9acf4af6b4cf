"""The content of this process' reports to the console, from its counters. No I/O."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from switchgear.clock import ConsoleClock
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from switchgear.sli import Indicators

MAX_UNIX_SECONDS = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()

MAX_REPORT_BYTES = 512 * 2**10
"""Size above which the console rejects a report."""

ReportSource = Callable[[], Mapping[str, Any]]
"""A function that returns current fields of a report. Counts are cumulative and lists complete, so
a lost or repeated report does no harm."""


class ConfirmedSource(Protocol):
    """Interface of a source of report fields that keeps them until a report was accepted.

    Implemented by :class:`~switchgear.policies.resilience_report.ResilienceReport`.
    """

    def __call__(self) -> Mapping[str, Any]: ...

    def confirm_delivery(self) -> bool:
        """Record that the console accepted the latest report; return True if more is to be sent."""
        ...


class ReportBuilder:
    """Builds the numbered reports of one process run. Times are by the console's clock."""

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
        """Return the next report as JSON. Not thread-safe."""
        self._seq += 1
        clock = self._clock
        body: dict[str, Any] = {
            "service": self._settings.service,
            "instance": self._settings.instance,
            "boot": self._boot,
            "started_at": format_time(clock.from_monotonic(self._began)),
            "seq": self._seq,
            "sent_at": format_time(clock.from_monotonic(clock.time.monotonic())),
        }
        for source in self._sources:
            body.update(source())
        report = _serialize(body)
        if len(report) > MAX_REPORT_BYTES and body.pop("applied_orders", None):
            report = _serialize(body)  # Acknowledgements identify the orders, too.
        return report

    def confirm_delivery(self) -> bool:
        """Record that the console accepted the latest report; return True if more is to be sent."""
        return self._resilience is not None and self._resilience.confirm_delivery()


def _serialize(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def read_checks(store: SnapshotStore) -> dict[str, Any]:
    """Return the report's fields on switches: what this process applies, and counts of checks.

    It applies a version of the snapshot and emergency orders. Allowed and blocked checks are
    counted for each switch.
    """
    checks = [
        {"switch": switch, "allowed": allowed, "blocked": blocked}
        for switch, (allowed, blocked) in store.switch_counts().items()
    ]
    view = store.view
    fields: dict[str, Any] = {"checks": checks}
    if view.snapshot is not None:
        fields["applied_version"] = view.snapshot.version
    if view.orders:  # Also without any in force, if there were some.
        fields["applied_orders"] = view.orders.ids
    return fields


def read_indicators(indicators: Indicators) -> dict[str, Any]:
    """Return the report's field on SLIs: the counts of good and total events of each SLO."""
    counts = indicators.get_counts().items()
    return {"sli": [{"slo": name, "good": good, "total": total} for name, (good, total) in counts]}


def format_time(seconds: float) -> str:
    """Return UNIX seconds as RFC 3339, clamped to 1970 to 9999: the clock may be wrong."""
    seconds = min(max(seconds, 0.0), MAX_UNIX_SECONDS)
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
