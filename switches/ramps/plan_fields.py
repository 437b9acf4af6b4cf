"""The fields of a ramp's plan as a form has them: how their texts are read and written. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from controlplane.core import durations


@dataclass(frozen=True)
class Field:
    """A field as it is typed: `kept` is its name in the plan, `kind` how its text is read."""

    name: str
    label: str
    kept: str
    kind: str = "text"
    placeholder: str = ""


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

PERCENT = Field("percent", "Share, %", "percent", "number", "25")
DWELL = Field("dwell", "Dwell", "dwell_seconds", "duration", "5m")
HOLD = Field("hold", "Without data, hold at most", "max_hold_seconds", "duration", "1h")
STEP_FIELDS = (PERCENT, DWELL, HOLD)

_SLO = Field("slo", "SLO", "slo", placeholder="core-availability")
_EVENTS = Field("min_events", "Least events", "min_events", "number")
GATE_FIELDS: Mapping[str, tuple[Field, ...]] = {
    "slo": (
        _SLO,
        Field("window", "Window", "window"),
        Field("max_burn_rate", "Highest burn rate", "max_burn_rate", "number"),
        _EVENTS,
        Field("min_bad", "Least bad events", "min_bad", "number"),
    ),
    "breaker": (Field("dependency", "Dependency", "dependency", placeholder="core->oracle"),),
    "manual": (Field("timeout", "Waits for a person at most", "timeout_seconds", "duration"),),
    "samples": (_SLO, _EVENTS),
    "external": (Field("gate", "Name", "gate", placeholder="smoke-tests"),),
}
GATE_NAMES: Mapping[str, str] = {
    "slo": "SLO",
    "breaker": "Breaker",
    "manual": "A person",
    "samples": "Enough events",
    "external": "External gate",
}


def read(fields: Iterable[Field], values: Mapping[str, str]) -> dict[str, Any]:
    """What was typed, as the plan has it; blank is left out."""
    found = {}
    for one in fields:
        text = values.get(one.name, "")
        if text:
            found[one.kept] = _READERS[one.kind](text)
    return found


def written(fields: Iterable[Field], kept: Mapping[str, Any]) -> dict[str, str]:
    """What the plan has, as it would be typed."""
    return {
        one.name: _duration(kept[one.kept]) if one.kind == "duration" else str(kept[one.kept])
        for one in fields
        if isinstance(kept.get(one.kept), str | int | float)
    }


def _duration(seconds: Any) -> str:
    if isinstance(seconds, int) and seconds > 0:
        return durations.canonical(timedelta(seconds=seconds))
    return f"{seconds:g}"


def number(text: str) -> Any:
    """The number, or what was typed: the plan's rules say then what is wrong with it."""
    written = text.removesuffix("%").strip()
    if not _NUMBER.fullmatch(written):  # Python reads more as one: `1_0`, `٥`, `nan`.
        return text
    value = float(written)
    return int(value) if value.is_integer() else value


def seconds(text: str) -> Any:
    """The seconds of a duration, or what was typed."""
    found = number(text)
    if not isinstance(found, str):
        return found
    try:
        return int(durations.parse(text.replace(" ", "")).total_seconds())
    except ValueError:
        return text


def is_misread(one: Field, text: str) -> bool:
    """Whether it is a duration that can't be read as one."""
    return one.kind == "duration" and bool(text) and isinstance(seconds(text), str)


_READERS: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "number": number,
    "duration": seconds,
}
