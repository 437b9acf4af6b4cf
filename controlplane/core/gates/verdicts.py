"""Rules that turn observed verdicts into answers of gates. Pure.

An observation that is missing, stale, older than the step or ahead of the clock gives `no_data`,
which holds a step and never fails it. The evidence then has the reason as `why`, a clause that
completes a sentence beginning with the gate's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.core import canonical

from .questions import FAIL, NO_DATA, PASS, GateAnswer, GateQuestion

FRESH = timedelta(seconds=60)
"""Maximum age of an observation, and the longest time that it may be ahead of the clock.

Concurrent transactions read their clocks in any order, so a small lead is normal. A larger lead
means that the clock was set back, so the observation's age is unknown.
"""
MAX_KEPT_BYTES = 2048
"""Maximum size of stored evidence, as canonical JSON."""
MAX_KEPT_FIELDS = 6
MAX_TEXT_LENGTH = 200
MAX_NAME_LENGTH = 50
KEPT_FIRST = ("good", "total", "why")
"""Fields that truncation keeps first, because verdicts depend on them."""


@dataclass(frozen=True)
class Observation:
    """The latest verdict on a gate that a program or an app reported, with its evidence.

    `by` is the label of the program, `failed_at` the time of its latest failure.
    """

    verdict: str
    observed_at: datetime
    evidence: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    failed_at: datetime | None = None


def evaluate_observation(
    question: GateQuestion, observation: Observation | None, now: datetime, *, missing: str
) -> GateAnswer:
    """Return an app's latest verdict as the gate's answer, or "no data" if it is stale or missing.

    `missing` is the reason given if there is no observation.
    """
    if observation is None:
        return build_no_data(question, missing, {})
    if why := explain_staleness(question, observation, now):
        return build_no_data(question, why, show_evidence(observation))
    return repeat_verdict(question, observation)


def evaluate_unknown_kind(question: GateQuestion, _found: Any, _now: datetime) -> GateAnswer:
    """Answer "no data" for a gate whose kind no installed app has, as after a downgrade."""
    return build_no_data(question, f"unknown gate type {question.type}", {})


def repeat_verdict(question: GateQuestion, observation: Observation) -> GateAnswer:
    """Return an observed verdict as the gate's answer; anything but a pass or fail is "no data"."""
    evidence = show_evidence(observation)
    if observation.verdict in (PASS, FAIL):
        return GateAnswer(observation.verdict, evidence)
    why = observation.evidence.get("why")
    text = why if isinstance(why, str) and why else "the source has no data"
    return build_no_data(question, text, evidence)


def build_no_data(question: GateQuestion, why: str, evidence: Mapping[str, Any]) -> GateAnswer:
    since = canonical.timestamp(question.since)
    return GateAnswer(NO_DATA, {**evidence, "since": since, "why": why})


def show_evidence(observation: Observation) -> dict[str, Any]:
    return {**observation.evidence, "observed_at": canonical.timestamp(observation.observed_at)}


def get_explanation(evidence: Mapping[str, Any]) -> str:
    """Return the explanation (`why`) in a gate's evidence without its full stop; empty if none."""
    why = evidence.get("why")
    return why.rstrip(".") if isinstance(why, str) else ""


def explain_staleness(question: GateQuestion, observation: Observation, now: datetime) -> str:
    """Return the reason why an observation does not count now; empty if it counts."""
    at = observation.observed_at
    if at < question.since:
        began = format_time(question.since)
        return f"the last verdict is from {format_time(at)}, before the step began at {began}"
    if at > now + FRESH:
        return (
            f"the last verdict is from {format_time(at)}, which is in the future: a clock was set"
            " back"
        )
    if now - at > FRESH:
        return f"the last verdict is from {format_time(at)}, more than {FRESH.seconds} seconds ago"
    return ""


def truncate_evidence(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return a verdict's evidence unchanged if it is short, otherwise its first short fields."""
    size = len(canonical.dumps(evidence))
    if size <= MAX_KEPT_BYTES:
        return dict(evidence)
    names = sorted(evidence, key=lambda name: name not in KEPT_FIRST)
    short = [name for name in names if len(name) <= MAX_NAME_LENGTH and _is_short(evidence[name])]
    shortened = {name: evidence[name] for name in short[:MAX_KEPT_FIELDS]}
    return {**shortened, "left_out": f"the rest of {size:,} bytes"}


def read_limit(question: GateQuestion, name: str, default: int) -> int:
    return int(question.spec.get(name, default))


def explain_too_few(total: float, needed: int, when: str = "since the step began") -> str:
    return f"{format_count(total)} of {format_events(needed)} {when}"


def format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_count(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def format_events(count: float, noun: str = "event") -> str:
    """Return `1 event` or `2,000 events`; `noun` may be another one."""
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def _is_short(value: Any) -> bool:
    if isinstance(value, str | int):
        return len(str(value)) <= MAX_TEXT_LENGTH
    return value is None or isinstance(value, float)
