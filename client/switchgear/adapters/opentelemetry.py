"""Events of calls for OpenTelemetry: on the current span, and as a counter.

Needs `opentelemetry-api` only. Without an SDK it costs little and has no effect.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import metrics, trace

from switchgear.journal import Entry, add_hook

MAX_SUBJECTS = 500
"""Maximum number of dependencies with series of their own; others are counted as "other"."""
MAX_ATTRIBUTES = 20
MAX_TEXT_LENGTH = 200

Attributes = dict[str, str | int | float | bool]


def instrument(meter_provider: metrics.MeterProvider | None = None) -> Callable[[], None]:
    """Record all events from now on; return a function that stops the recording.

    Each event is added to the current span, if the span is recording, with a name such as
    `switchgear.call_retried`, and with `switchgear.about` and the event's plain values as
    attributes. The counter `switchgear.events` has the attributes `event` and `about`.
    `meter_provider` is the global one by default.
    """
    return add_hook(EventHook(meter_provider))


class EventHook:
    """A journal hook that adds each event to the current span, and counts it."""

    def __init__(self, meter_provider: metrics.MeterProvider | None = None) -> None:
        provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
        self._counter = provider.get_meter("switchgear").create_counter(
            "switchgear.events", unit="{event}", description="Events of calls and breakers."
        )
        self._abouts: set[str] = set()
        self._lock = threading.RLock()

    def __call__(self, entry: Entry) -> None:
        span = trace.get_current_span()
        if span.is_recording():
            span.add_event(f"switchgear.{entry.name}", make_attributes(entry))
        self._counter.add(1, {"event": entry.name, "about": self._limit_subject(entry.about)})

    def _limit_subject(self, about: str) -> str:
        if about in self._abouts:
            return about
        with self._lock:
            if len(self._abouts) >= MAX_SUBJECTS:
                return "other"
            self._abouts.add(about)
        return about


def make_attributes(entry: Entry) -> Attributes:
    """Return an event's plain values as at most 20 span attributes, texts up to 200 characters."""
    found: Attributes = {"switchgear.about": entry.about[:MAX_TEXT_LENGTH]}
    fields: Mapping[str, Any] = entry.fields
    for name, value in list(fields.items())[: MAX_ATTRIBUTES - 1]:
        if isinstance(value, str):
            found[f"switchgear.{name}"] = value[:MAX_TEXT_LENGTH]
        elif isinstance(value, bool | int | float):
            found[f"switchgear.{name}"] = value
    return found
