"""What a message says, whatever way it goes out: a table of events, and a notice made from facts.

Pure: facts in, text out. How it looks, and how it is escaped, is each transport's own matter.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core.outbox.wordings.breakers import BREAKERS
from controlplane.core.outbox.wordings.dead_letters import DEAD_LETTERS
from controlplane.core.outbox.wordings.decisions import DECISIONS
from controlplane.core.outbox.wordings.drills import DRILLS
from controlplane.core.outbox.wordings.entry import ENTRY
from controlplane.core.outbox.wordings.jobs import JOBS
from controlplane.core.outbox.wordings.machines import MACHINES
from controlplane.core.outbox.wordings.ramps import RAMPS
from controlplane.core.outbox.wordings.shape import (
    MAX_LINE_LENGTH,
    MAX_LINES,
    MAX_LISTED,
    Notice,
    Wording,
)
from controlplane.core.outbox.wordings.slo import SLO
from controlplane.core.outbox.wordings.switches import SWITCHES
from controlplane.core.outbox.wordings.upkeep import UPKEEP

__all__ = [
    "MAX_LISTED",
    "WORDINGS",
    "Notice",
    "Wording",
    "buttons_of",
    "is_loud",
    "moment",
    "notice",
    "severity_of",
]

WORDINGS: Mapping[str, Wording] = {
    **SWITCHES,
    **RAMPS,
    **MACHINES,
    **JOBS,
    **DECISIONS,
    **UPKEEP,
    **DRILLS,
    **BREAKERS,
    **DEAD_LETTERS,
    **SLO,
    **ENTRY,
}

DIGESTIBLE = ("episode.expires_soon", "escalation.")
"""Beginnings of events that are told together when too many of them wait for one destination."""

LOUD = ("escalation.",)
"""Beginnings of events that a whole channel is to see, as it sees all that is critical, and not
only who follows the thread."""

ASIDES = ("escalation.", "interaction.", "trip.", "episode.acknowledged")
"""Beginnings of events that change nothing about their subject: its last state still stands."""

FLEETING = ("interaction.",)
"""Beginnings of events that nobody misses once they are late: given up, they wait for nobody."""

HEADS = {"switch.engaged"}
"""Events that usually begin a thread: the channel sees them anyway."""

_UNTIL_RELEASED = frozenset({"switch.extended", "switch.released", "switch.undone"})
_OF_A_RAMP = frozenset(
    {
        "ramp.advanced",
        "ramp.held",
        "ramp.paused",
        "ramp.compensated",
        "ramp.aborted",
        "switch.released",
    }
)
SUPERSEDED_BY: Mapping[str, frozenset[str]] = {
    "switch.extended": _UNTIL_RELEASED,
    "ramp.advanced": _OF_A_RAMP,
    "ramp.resumed": _OF_A_RAMP,
}
"""Updates that a later event about the same subject makes obsolete. Never the first or the last of
a subject, nor what asks somebody for something."""

LEFT_OUT = "left_out"
"""The number of superseded updates that a message stands for."""

REPEAT = "may_be_repeat"
"""The fact that an earlier attempt may have arrived, and nobody can look."""

AT_EXPIRY = {
    "hold": "then it holds and is OVERDUE",
    "ramp": "then it ramps",
    "release": "then it is released",
}


def severity_of(event: str) -> str:
    """How much an event matters by itself: critical, warning or info."""
    wording = WORDINGS.get(event)
    return wording.severity if wording else "info"


def buttons_of(event: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of an event's buttons; what is permanent or released can't be extended."""
    wording = WORDINGS.get(event)
    names = wording.buttons if wording and facts.get("did") != "release" else ()
    is_permanent = "expires_at" in facts and facts["expires_at"] is None
    return tuple(name for name in names if not (name == "extend" and is_permanent))


def is_loud(event: str, severity: str) -> bool:
    """Whether what is said in a thread is for the whole channel too."""
    return event.startswith(LOUD) or (severity == "critical" and event not in HEADS)


def notice(event: str, facts: Mapping[str, Any]) -> Notice:
    """The notice of an event. One that has no wording yet is told plainly, with all its facts."""
    wording = WORDINGS.get(event) or _plain(event, facts)
    lines = [(label, _text(fact, facts)) for label, fact in wording.lines]
    if left_out := facts.get(LEFT_OUT):
        updates = "1 earlier update" if left_out == 1 else f"{left_out:,} earlier updates"
        lines.append(("Note", f"{updates} left out"))
    if facts.get(REPEAT):
        lines.append(("Note", "may be a repeat: nobody knows whether it arrived before"))
    return Notice(
        icon=wording.icon,
        title=_clip(wording.title.format_map(_Known(_counted(facts)))),
        lines=tuple((label, text) for label, text in lines if text),
        path=str(facts.get("path") or "/"),
    )


class _Known(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def _counted(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts, whole numbers without a fraction: 25 %, but 12.5 %."""
    return {
        key: int(fact) if isinstance(fact, float) and fact.is_integer() else fact
        for key, fact in facts.items()
    }


def _plain(event: str, facts: Mapping[str, Any]) -> Wording:
    plain = {key: value for key, value in facts.items() if key != REPEAT}
    told = [key for key, value in plain.items() if isinstance(value, str | int | float)]
    lines = tuple((key.replace("_", " "), key) for key in told[:MAX_LINES])
    return Wording("ℹ️", event.replace("{", "{{").replace("}", "}}"), lines)


def _text(fact: str, facts: Mapping[str, Any]) -> str:
    value = facts.get(fact)
    if fact == "expires_at" and "expires_at" in facts:
        return _expiry(value, str(facts.get("on_expiry")))
    if value is None:
        return ""
    is_time = fact == "at" or fact.endswith("_at")
    return _clip(moment(value) if is_time else str(value))


def _expiry(value: Any, on_expiry: str) -> str:
    if value is None:
        return "never (permanent)"
    policy = AT_EXPIRY.get(on_expiry)
    return f"{moment(value)}, {policy}" if policy else moment(value)


def moment(value: Any) -> str:
    """`2026-11-21T02:11:00.000000Z` → `2026-11-21 02:11:00 UTC`."""
    try:
        return f"{datetime.fromisoformat(str(value)):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return str(value)


def _clip(text: str) -> str:
    return text if len(text) <= MAX_LINE_LENGTH else f"{text[: MAX_LINE_LENGTH - 1]}…"
