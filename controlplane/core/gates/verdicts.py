"""How a gate is judged from what is known of it. Pure.

What is not known, too old, from before the step or from a clock that is ahead is `no_data`: it
holds a step and fails none. Whatever is no data says why in its evidence, in a clause that goes on
a line of its own or behind the gate's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.core import canonical
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, Answer, Question

OK = "ok"
FRESH = timedelta(seconds=60)
"""For how long a verdict counts. Also how far ahead of us one may seem: transactions that overlap
read their clocks in any order. One that is further ahead is from before a clock was set back, and
nobody knows how old it is."""
MIN_EVENTS = 100
MIN_BAD = 3
MAX_SHOWN_BYTES = 2048  # bytes of canonical JSON; a step keeps the evidence of each of its gates.
MAX_SHOWN = 6  # parts of evidence that is longer.
MAX_TEXT_LENGTH = 200
JUDGED_BY = ("good", "total", "why")


@dataclass(frozen=True)
class Said:
    """The latest verdict that somebody gave, and what they saw; `by` is an outsider's label, and
    `failed_at` when one last observed a fail."""

    verdict: str
    observed_at: datetime
    evidence: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    failed_at: datetime | None = None


def external(question: Question, said: Said | None, now: datetime) -> Answer:
    """`ok` passes and `fail` fails, from an outsider who looked since the step began.

    A fail since then fails whatever was said after it, and however long nobody looked here: two
    words may come between two looks.
    """
    if said is None:
        return _nothing(question, f"nobody has reported {question.spec.get('gate')} yet", {})
    evidence = {
        "said": said.verdict,
        "by": said.by,
        "observed_at": canonical.timestamp(said.observed_at),
        "evidence": dict(said.evidence),
    }
    if said.failed_at is not None and question.since <= said.failed_at <= now + FRESH:
        return Answer(FAIL, {**evidence, **_failed(said, said.failed_at)})
    if why := _why_not(question, said, now):
        return _nothing(question, why, evidence)
    if said.verdict == OK:
        return Answer(PASS, evidence)
    return Answer(FAIL, {**evidence, "why": f"{said.by} said {said.verdict}"})


def samples(question: Question, seen: int, _now: datetime) -> Answer:
    """Passes once there were enough events since the step began; it never fails.

    `seen` may be less than all, once it is enough.
    """
    needed = _number(question, "min_events", MIN_EVENTS)
    evidence = {"seen": seen, "needed": needed, "since": canonical.timestamp(question.since)}
    if seen >= needed:
        return Answer(PASS, evidence)
    return _nothing(question, _too_few(seen, needed), evidence)


def breaker(question: Question, said: Said | None, now: datetime) -> Answer:
    """As whoever knows the breakers says: passes while all fresh instances have it closed."""
    if said is None:
        return _nothing(question, "nobody has looked at this breaker yet", {})
    if why := _why_not(question, said, now):
        return _nothing(question, why, _seen(said))
    return _as_said(question, said)


def slo(question: Question, said: Said | None, now: datetime) -> Answer:
    """As whoever evaluates SLOs says, if it stands on enough events: `good` of `total`.

    Fewer than `min_events` are no data, whatever the verdict; a `fail` on fewer than `min_bad` bad
    ones is a pass, because a burn rate means nothing on so few.
    """
    if said is None:
        return _nothing(question, "nobody has evaluated this SLO yet", {})
    if why := _why_not(question, said, now):
        return _nothing(question, why, _seen(said))
    if said.verdict == NO_DATA:
        return _as_said(question, said)
    good, total = _count(said.evidence.get("good")), _count(said.evidence.get("total"))
    if good is None or total is None or good > total:
        why = "the answer does not say how many events it stands on"
        return _nothing(question, why, _seen(said))
    needed = _number(question, "min_events", MIN_EVENTS)
    if total < needed:
        return _nothing(question, _too_few(total, needed), _seen(said))
    min_bad = _number(question, "min_bad", MIN_BAD)
    if said.verdict == FAIL and total - good < min_bad:
        why = f"{_figure(total - good)} bad events are too few to fail on; it takes {min_bad:,}"
        return Answer(PASS, {**_seen(said), "why": why})
    return _as_said(question, said)


def unknown(question: Question, _found: Any, _now: datetime) -> Answer:
    """Nobody knows how to judge such a gate: perhaps a later version asked."""
    return _nothing(question, f"there are no gates of the type {question.type} here", {})


def brief(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence if it is short, else some of its numbers and short texts and how long it is."""
    size = len(canonical.dumps(evidence))
    if size <= MAX_SHOWN_BYTES:
        return dict(evidence)
    named = sorted(evidence, key=lambda name: name not in JUDGED_BY)
    short = [name for name in named if len(name) <= 50 and _is_short(evidence[name])]
    shown = {name: evidence[name] for name in short[:MAX_SHOWN]}
    return {**shown, "left_out": f"the rest of {size:,} bytes"}


def _as_said(question: Question, said: Said) -> Answer:
    if said.verdict in (PASS, FAIL):
        return Answer(said.verdict, _seen(said))
    why = said.evidence.get("why")
    text = why if isinstance(why, str) and why else "whoever answers has no data"
    return _nothing(question, text, _seen(said))


def _seen(said: Said) -> dict[str, Any]:
    return {**said.evidence, "observed_at": canonical.timestamp(said.observed_at)}


def _nothing(question: Question, why: str, evidence: Mapping[str, Any]) -> Answer:
    since = canonical.timestamp(question.since)
    return Answer(NO_DATA, {**evidence, "since": since, "why": why})


def _why_not(question: Question, said: Said, now: datetime) -> str:
    """Why what was said does not count now; empty if it does."""
    at = said.observed_at
    if at < question.since:
        began = _clock(question.since)
        return f"the last verdict is from {_clock(at)}, before the step began at {began}"
    if at > now + FRESH:
        return f"the last verdict is from {_clock(at)}, still to come: a clock was set back"
    if now - at > FRESH:
        return f"the last verdict is from {_clock(at)}, more than {FRESH.seconds} seconds ago"
    return ""


def _failed(said: Said, at: datetime) -> dict[str, Any]:
    """What tells of a fail at that time, where perhaps something else was said since."""
    if (said.verdict, said.observed_at) == (FAIL, at):
        return {"why": f"{said.by} said {said.verdict}"}
    why = f"a fail was observed at {_clock(at)}, since the step began; no later word undoes it"
    return {"failed_at": canonical.timestamp(at), "why": why}


def _too_few(total: float, needed: int) -> str:
    return f"{_figure(total)} of {needed:,} events since the step began"


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _number(question: Question, name: str, otherwise: int) -> int:
    return int(question.spec.get(name, otherwise))


def _count(value: Any) -> float | None:
    """A number of events, whole or not as Prometheus extrapolates them; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2**63:
        return None
    return value


def _is_short(value: Any) -> bool:
    if isinstance(value, str | int):
        return len(str(value)) <= MAX_TEXT_LENGTH
    return value is None or isinstance(value, float)
