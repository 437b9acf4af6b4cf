"""Verdicts from observations. Pure.

An observation that is missing, too old, older than the step or ahead of the clock is `no_data`: it
holds a step and never fails one. Its evidence says why, in a clause that reads after the name of
the gate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.core import canonical

from .questions import FAIL, NO_DATA, PASS, Answer, Question

FRESH = timedelta(seconds=60)
"""Maximum age of an observation, and the furthest that it may be ahead of the clock.

Overlapping transactions read their clocks in any order. An observation further ahead dates from
before the clock was set back, so its age is unknown.
"""
MAX_KEPT_BYTES = 2048
"""Maximum size of the canonical JSON. A step stores the evidence of each of its gates."""
MAX_KEPT_FIELDS = 6
MAX_TEXT_LENGTH = 200
MAX_NAME_LENGTH = 50
KEPT_FIRST = ("good", "total", "why")
"""Fields of long evidence that verdicts depend on."""


@dataclass(frozen=True)
class Observation:
    """The latest verdict of a program or an app, with its evidence.

    `by` is the label of an outside program, `failed_at` the time at which one last saw a failure.
    """

    verdict: str
    observed_at: datetime
    evidence: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    failed_at: datetime | None = None


def judge_observation(
    question: Question, observation: Observation | None, now: datetime, *, missing: str
) -> Answer:
    """Return an app's verdict while it is fresh; `missing` explains that there is none yet."""
    if observation is None:
        return no_data(question, missing, {})
    if why := explain_staleness(question, observation, now):
        return no_data(question, why, show_evidence(observation))
    return repeat_verdict(question, observation)


def judge_unknown(question: Question, _found: Any, _now: datetime) -> Answer:
    """Return no data for a kind that no app here has: a later version may have asked."""
    return no_data(question, f"there are no gates of the type {question.type} here", {})


def repeat_verdict(question: Question, observation: Observation) -> Answer:
    """Return the verdict of a fresh observation."""
    evidence = show_evidence(observation)
    if observation.verdict in (PASS, FAIL):
        return Answer(observation.verdict, evidence)
    why = observation.evidence.get("why")
    text = why if isinstance(why, str) and why else "whoever answers has no data"
    return no_data(question, text, evidence)


def no_data(question: Question, why: str, evidence: Mapping[str, Any]) -> Answer:
    since = canonical.timestamp(question.since)
    return Answer(NO_DATA, {**evidence, "since": since, "why": why})


def show_evidence(observation: Observation) -> dict[str, Any]:
    return {
        **observation.evidence,
        "observed_at": canonical.timestamp(observation.observed_at),
    }


def explain_staleness(question: Question, observation: Observation, now: datetime) -> str:
    """Return why an observation does not count now; empty if it counts."""
    at = observation.observed_at
    if at < question.since:
        began = format_time(question.since)
        return f"the last verdict is from {format_time(at)}, before the step began at {began}"
    if at > now + FRESH:
        return f"the last verdict is from {format_time(at)}, still to come: a clock was set back"
    if now - at > FRESH:
        return f"the last verdict is from {format_time(at)}, more than {FRESH.seconds} seconds ago"
    return ""


def truncate_evidence(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return short evidence as it is; of long evidence a few short fields, and its size."""
    size = len(canonical.dumps(evidence))
    if size <= MAX_KEPT_BYTES:
        return dict(evidence)
    names = sorted(evidence, key=lambda name: name not in KEPT_FIRST)
    short = [name for name in names if len(name) <= MAX_NAME_LENGTH and _is_short(evidence[name])]
    kept = {name: evidence[name] for name in short[:MAX_KEPT_FIELDS]}
    return {**kept, "left_out": f"the rest of {size:,} bytes"}


def read_limit(question: Question, name: str, default: int) -> int:
    """Return a whole number of the gate's spec."""
    return int(question.spec.get(name, default))


def explain_too_few(total: float, needed: int) -> str:
    return f"{format_count(total)} of {needed:,} events since the step began"


def format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_count(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _is_short(value: Any) -> bool:
    if isinstance(value, str | int):
        return len(str(value)) <= MAX_TEXT_LENGTH
    return value is None or isinstance(value, float)
