"""What a message says, whatever way it goes out: a table of events, and a notice made from facts.

Pure: facts in, text out. How it looks, and how it is escaped, is each transport's own matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

LONGEST_LINE = 500
MOST_LINES = 10


@dataclass(frozen=True)
class Notice:
    """A title, what to know about it (label, text), and the console's page about it."""

    icon: str
    title: str
    lines: tuple[tuple[str, str], ...]
    path: str


@dataclass(frozen=True)
class Wording:
    """How one event is told: a title with `{facts}` in it, and (label, fact) lines.

    `buttons` are what a signed-in person may do about it at once, where a transport has buttons.
    """

    icon: str
    title: str
    lines: tuple[tuple[str, str], ...]
    severity: str = "info"
    buttons: tuple[str, ...] = ()


WORDINGS = {
    "switch.engaged": Wording(
        "🛑",
        "{switch} ENGAGED: services are told to block its traffic",
        (("By", "by"), ("Reason", "reason"), ("Expires", "expires_at")),
        severity="critical",
        buttons=("acknowledge", "extend"),
    ),
    "switch.extended": Wording(
        "⏳",
        "{switch} stays ENGAGED for longer",
        (
            ("By", "by"),
            ("Why longer", "said"),
            ("Engaged because", "reason"),
            ("Expires", "expires_at"),
        ),
        buttons=("acknowledge", "extend"),
    ),
    "switch.released": Wording(
        "✅",
        "{switch} released: services are told to let its traffic flow",
        (("By", "by"), ("Why", "said"), ("Was engaged because", "reason")),
    ),
    "switch.undone": Wording(
        "↩️",
        "{switch} engage undone: services are told to let its traffic flow",
        (("By", "by"), ("Was engaged because", "reason")),
    ),
    "episode.overdue": Wording(
        "⏰",
        "{switch} is OVERDUE: past its expiry and still engaged",
        (
            ("What to do", "said"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
            ("Expired", "expires_at"),
        ),
        severity="critical",
        buttons=("acknowledge", "extend"),
    ),
    "approval.requested": Wording(
        "✋",
        "Approval wanted: {summary}",
        (("Asked by", "by"), ("Reason", "reason")),
        severity="warning",
        buttons=("approve", "deny"),
    ),
    "audit.anchored": Wording(
        "⚓",
        "Audit trail anchored at row {id}",
        (("Hash", "hash"), ("At", "at")),
    ),
}

AT_EXPIRY = {
    "hold": "then it holds and is OVERDUE",
    "ramp": "then it ramps",
    "release": "then it is released",
}


def severity_of(event: str) -> str:
    """How much an event matters by itself: critical, warning or info."""
    wording = WORDINGS.get(event)
    return wording.severity if wording else "info"


def notice(event: str, facts: Mapping[str, Any]) -> Notice:
    """The notice of an event. One that has no wording yet is told plainly, with all its facts."""
    wording = WORDINGS.get(event) or _plain(event, facts)
    lines = ((label, _text(fact, facts)) for label, fact in wording.lines)
    return Notice(
        icon=wording.icon,
        title=_clip(wording.title.format_map(_Known(facts))),
        lines=tuple((label, text) for label, text in lines if text),
        path=str(facts.get("path") or "/"),
    )


class _Known(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def _plain(event: str, facts: Mapping[str, Any]) -> Wording:
    told = [key for key, value in facts.items() if isinstance(value, str | int | float)]
    lines = tuple((key.replace("_", " "), key) for key in told[:MOST_LINES])
    return Wording("ℹ️", event.replace("{", "{{").replace("}", "}}"), lines)


def _text(fact: str, facts: Mapping[str, Any]) -> str:
    value = facts.get(fact)
    if fact == "expires_at" and "expires_at" in facts:
        return _expiry(value, str(facts.get("on_expiry")))
    if value is None:
        return ""
    return _clip(moment(value) if fact.endswith("at") else str(value))


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
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
