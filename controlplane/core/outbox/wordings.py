"""What a message says, whatever way it goes out: a table of events, and a notice made from facts.

Pure: facts in, text out. How it looks, and how it is escaped, is each transport's own matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

LONGEST_LINE = 500
MOST_LINES = 10
MOST_LISTED = 20


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
    "switch.broke_glass": Wording(
        "🚨",
        "GLASS BROKEN: {switch}, {did} against the rule “{rule}”",
        (
            ("By", "by"),
            ("Why the rule had to yield", "said"),
            ("Engaged because", "reason"),
            ("Expires", "expires_at"),
        ),
        severity="critical",
        buttons=("acknowledge",),
    ),
    "switch.held": Wording(
        "🔒",
        "{switch} will be held at its expiry",
        (("Why", "said"), ("By", "by"), ("Engaged because", "reason"), ("Expires", "expires_at")),
    ),
    "switch.extended": Wording(
        "⏳",
        "{switch} stays ENGAGED for longer",
        (
            ("By", "by"),
            ("Why longer", "said"),
            ("Engaged because", "reason"),
            ("Expires", "expires_at"),
            ("Re-confirm by", "reconfirm_due_at"),
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
    "episode.expires_soon": Wording(
        "⏳",
        "{switch} expires in {left}",
        (
            ("What happens", "said"),
            ("Expires", "expires_at"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
        ),
        severity="warning",
        buttons=("extend",),
    ),
    "episode.acknowledged": Wording(
        "👀",
        "{switch} acknowledged: somebody is on it",
        (("By", "by"), ("Comment", "said")),
    ),
    "episode.reconfirm_soon": Wording(
        "📌",
        "{switch} is permanent and has to be re-confirmed within {left}",
        (
            ("What to do", "said"),
            ("Re-confirm by", "reconfirm_due_at"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
        ),
        severity="warning",
    ),
    "episode.reconfirm_due": Wording(
        "📌",
        "{switch} is permanent and was NOT re-confirmed this week",
        (
            ("What to do", "said"),
            ("Due since", "reconfirm_due_at"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
        ),
        severity="warning",
        buttons=("acknowledge",),
    ),
    "episode.reconfirmed": Wording(
        "📌",
        "{switch} re-confirmed: it stays ENGAGED for good",
        (("By", "by"), ("Why it has to stay", "said"), ("Re-confirm again by", "reconfirm_due_at")),
    ),
    "episodes.expire_soon": Wording(
        "⏳",
        "{count} switches are near their expiry",
        (
            ("Stay engaged then, OVERDUE", "held"),
            ("Released by themselves then", "released"),
            ("Permanent, to be re-confirmed", "permanent"),
        ),
        severity="warning",
    ),
    "episodes.expired": Wording(
        "⏰",
        "{count} switches have reached their expiry",
        (
            ("Held and OVERDUE", "held"),
            ("Released, unless a safety rule forbids it", "released"),
        ),
        severity="critical",
    ),
    "episodes.reconfirm_due": Wording(
        "📌",
        "{count} permanent switches were NOT re-confirmed this week",
        (("Re-confirm or release", "permanent"),),
        severity="warning",
    ),
    "approval.requested": Wording(
        "✋",
        "Approval wanted: {summary}",
        (("Asked by", "by"), ("Reason", "reason"), ("Risk", "risk"), ("Lapses", "lapses_at")),
        severity="warning",
        buttons=("approve", "deny"),
    ),
    "approval.decided": Wording(
        "☑️",
        "{outcome}: {summary}",
        (
            ("Decided by", "decided_by"),
            ("Comment", "comment"),
            ("Asked by", "by"),
            ("Reason", "reason"),
            ("Replaced by approval", "replaced_by"),
        ),
    ),
    "review.opened": Wording(
        "🔨",
        "GLASS BROKEN, a review waits for a second person: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason")),
        severity="critical",
        buttons=("approve",),
    ),
    "review.waiting": Wording(
        "🔨",
        "Unsigned review: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason"), ("Since", "said")),
        severity="warning",
        buttons=("approve", "acknowledge"),
    ),
    "review.reopened": Wording(
        "🔨",
        "Review opened again, still unsigned: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason"), ("Since", "said")),
        severity="critical",
        buttons=("approve",),
    ),
    "review.signed": Wording(
        "☑️",
        "Review signed: {summary}",
        (
            ("Signed by", "decided_by"),
            ("Comment", "comment"),
            ("Glass broken by", "by"),
            ("Reason", "reason"),
        ),
    ),
    "interaction.answered": Wording("💬", "{said}", ()),
    "report.ready": Wording(
        "📋",
        "Weekly report {week}{kind}: {headline}",
        (
            ("First", "line_1"),
            ("Then", "line_2"),
            ("And", "line_3"),
            ("Also", "line_4"),
            ("In numbers", "counts"),
            ("Environment", "environment"),
            ("Audit anchor", "anchor"),
        ),
    ),
    "report.unsigned": Wording(
        "🖊️",
        "Weekly report {week} is not signed off yet: {headline}",
        (("First", "line_1"), ("Then", "line_2"), ("In numbers", "counts")),
        severity="warning",
    ),
    "report.signed": Wording(
        "🖋️",
        "Weekly report {week} signed off",
        (("By", "by"), ("Comment", "comment")),
    ),
    "escalation.step": Wording(
        "📣",
        "{title}",
        (
            ("Told now", "now_told"),
            ("Told before", "told_before"),
            ("Reaches nobody", "not_reached"),
            ("Acknowledged", "acknowledged"),
            ("About it", "about"),
            ("Waiting since", "opened_at"),
        ),
        severity="warning",
        buttons=("acknowledge",),
    ),
    "escalation.listing": Wording(
        "📣",
        "{count} things wait for somebody to acknowledge them",
        (("They are", "list"), ("The first since", "opened_at")),
        severity="warning",
    ),
    "target.test": Wording(
        "🔔",
        "A test for {target}: if you read this, it works",
        (("Sent by", "by"), ("To do", "said")),
    ),
    "trip.tripped": Wording(
        "🤖",
        "{source} stopped {switch}",
        (("By", "by"), ("Reason", "reason"), ("Allowed", "why")),
    ),
    "trip.engaged": Wording(
        "🤖",
        "{source} asks to stop {switch} too",
        (("By", "by"), ("Reason", "reason"), ("But", "why")),
    ),
    "trip.resolved": Wording(
        "🌤️",
        "The alert has resolved; {switch} stays engaged until somebody releases it",
        (("Alert", "source"), ("Was", "reason")),
    ),
    "trip.waits": Wording(
        "🙋",
        "{source} asks to stop {switch}: a person decides",
        (("Reason", "reason"), ("Why a person", "why"), ("By", "by")),
        severity="critical",
    ),
    "trip.refused": Wording(
        "✋",
        "{source} was not allowed to stop {switch}",
        (("Why not", "why"), ("Reason", "reason"), ("By", "by")),
        severity="warning",
    ),
    "trip_policy.changed": Wording(
        "📐",
        "What machines may stop was changed",
        (("Policies", "said"), ("By", "by")),
        severity="warning",
    ),
    "audit.anchored": Wording(
        "⚓",
        "Audit trail anchored at row {id}",
        (("Hash", "hash"), ("At", "at")),
    ),
}

WORDINGS["outbox.backlog"] = Wording(
    "📬",
    "{pending} messages wait to go out",
    (("What to do", "said"), ("The oldest waits since", "waiting_since_at")),
    severity="critical",
    buttons=("acknowledge",),
)
WORDINGS["outbox.drained"] = Wording(
    "📭",
    "The outbox has caught up: {pending} messages wait",
    (("There were too many since", "since_at"),),
)
WORDINGS["outbox.digest"] = Wording(
    "📚",
    "{count} reminders at once",
    (*((f"{number + 1}", f"told_{number}") for number in range(MOST_LISTED)), ("And", "more")),
)

DIGESTIBLE = ("episode.expires_soon", "escalation.")
"""Beginnings of events that are told together when too many of them wait for one destination."""

LOUD = ("escalation.",)
"""Beginnings of events that a whole channel is to see, as it sees all that is critical, and not
only who follows the thread."""

ASIDES = ("escalation.", "interaction.", "episode.acknowledged")
"""Beginnings of events that change nothing about their subject: its last state still stands."""

HEADS = {"switch.engaged"}
"""Events that usually begin a thread: the channel sees them anyway."""

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


def buttons_of(event: str) -> tuple[str, ...]:
    """The names of an event's buttons."""
    wording = WORDINGS.get(event)
    return wording.buttons if wording else ()


def is_loud(event: str, severity: str) -> bool:
    """Whether what is said in a thread is for the whole channel too."""
    return event.startswith(LOUD) or (severity == "critical" and event not in HEADS)


def notice(event: str, facts: Mapping[str, Any]) -> Notice:
    """The notice of an event. One that has no wording yet is told plainly, with all its facts."""
    wording = WORDINGS.get(event) or _plain(event, facts)
    lines = [(label, _text(fact, facts)) for label, fact in wording.lines]
    if facts.get(REPEAT):
        lines.append(("Note", "may be a repeat: nobody knows whether it arrived before"))
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
    plain = {key: value for key, value in facts.items() if key != REPEAT}
    told = [key for key, value in plain.items() if isinstance(value, str | int | float)]
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
