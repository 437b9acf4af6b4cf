"""What happens to calls, for OpenTelemetry: an event on the span that is current, and a counter.

Needs `opentelemetry-api` only; without an SDK it costs little and tells nobody.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import metrics, trace

from switchgear.journal import Entry, add_hook

MAX_SUBJECTS = 500
"""So many dependencies have series of their own; the others are "other"."""
MAX_ATTRIBUTES = 20
MAX_TEXT_LENGTH = 200

Attributes = dict[str, str | int | float | bool]


def instrument(meter_provider: metrics.MeterProvider | None = None) -> Callable[[], None]:
    """Tell of everything from now on; returns what ends that.

    An event `switchgear.call_retried`, and so on, comes to the current span if that is recorded,
    with `switchgear.about` and its plain values; the counter `switchgear.events` has `event` and
    `about`. Without a `meter_provider` the global one counts.
    """
    return add_hook(Telling(meter_provider))


class Telling:
    """A hook of the journal."""

    def __init__(self, meter_provider: metrics.MeterProvider | None = None) -> None:
        provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
        self._counter = provider.get_meter("switchgear").create_counter(
            "switchgear.events", unit="{event}", description="What happened to calls and breakers."
        )
        self._abouts: set[str] = set()
        self._lock = threading.RLock()

    def __call__(self, entry: Entry) -> None:
        span = trace.get_current_span()
        if span.is_recording():
            span.add_event(f"switchgear.{entry.name}", attributes_of(entry))
        self._counter.add(1, {"event": entry.name, "about": self._bounded(entry.about)})

    def _bounded(self, about: str) -> str:
        if about in self._abouts:
            return about
        with self._lock:
            if len(self._abouts) >= MAX_SUBJECTS:
                return "other"
            self._abouts.add(about)
        return about


def attributes_of(entry: Entry) -> Attributes:
    """Its plain values, the first 20 of them, texts shortened to 200 characters."""
    found: Attributes = {"switchgear.about": entry.about[:MAX_TEXT_LENGTH]}
    fields: Mapping[str, Any] = entry.fields
    for name, value in list(fields.items())[: MAX_ATTRIBUTES - 1]:
        if isinstance(value, str):
            found[f"switchgear.{name}"] = value[:MAX_TEXT_LENGTH]
        elif isinstance(value, bool | int | float):
            found[f"switchgear.{name}"] = value
    return found
