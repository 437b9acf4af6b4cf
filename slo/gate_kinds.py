"""The gate kind `slo`: a ramp waits while an SLO burns its budget too fast."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core import durations
from controlplane.core.gates import services as gates
from controlplane.core.gates.fields import (
    NUMBER,
    GateField,
    check_duration,
    number_between,
    whole_number_between,
)
from controlplane.core.gates.kinds import GATE_KINDS, GateKind
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateAnswer, GateQuestion
from controlplane.core.gates.samples import MIN_EVENTS, MIN_EVENTS_FIELD, SLO_FIELD
from controlplane.core.gates.verdicts import (
    Observation,
    build_no_data,
    explain_staleness,
    explain_too_few,
    format_count,
    format_events,
    get_explanation,
    read_limit,
    repeat_verdict,
    show_evidence,
)
from slo.arithmetic.evaluate import format_burn_rate
from slo.evaluation.gates import TYPE, read_window

MIN_BAD = 3


def evaluate(question: GateQuestion, observation: Observation | None, now: datetime) -> GateAnswer:
    """Return the gate's verdict: that of the last evaluation of its SLO, if it is recent.

    With fewer than `min_events` events the verdict is no data. A failure with fewer than `min_bad`
    bad events counts as passed.
    """
    if observation is None:
        return build_no_data(question, "this SLO has not been evaluated yet", {})
    evidence = show_evidence(observation)
    if why := explain_staleness(question, observation, now):
        return build_no_data(question, why, evidence)
    if observation.verdict == NO_DATA:
        return repeat_verdict(question, observation)
    good, total = _read_count(evidence.get("good")), _read_count(evidence.get("total"))
    if good is None or total is None or good > total:
        why = "the number of events is unknown"
        return build_no_data(question, why, evidence)
    min_events = read_limit(question, "min_events", MIN_EVENTS)
    if total < min_events:
        window = read_window(question.spec)
        when = f"in the last {durations.format_readable(window)} of the step"
        if observation.observed_at - question.since < window:
            when = "since the step began"
        why = explain_too_few(total, min_events, when)
        if bad := total - good:
            why = f"{why}, {format_count(bad)} of them bad"
        return build_no_data(question, why, evidence)
    min_bad = read_limit(question, "min_bad", MIN_BAD)
    if observation.verdict == FAIL and total - good < min_bad:
        why = f"only {format_events(total - good, 'bad event')}; it fails at {min_bad:,}"
        return GateAnswer(PASS, {**evidence, "why": why})
    return repeat_verdict(question, observation)


def describe_finding(spec: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Return the burn rate with its limit, and the events from which it was computed."""
    why = get_explanation(evidence)
    if not evidence.keys() >= {"burn_rate", "good", "total", "window"}:
        return why
    good, events = format_count(evidence["good"]), format_events(evidence["total"])
    rate, limit = map(format_burn_rate, (evidence["burn_rate"], spec["max_burn_rate"]))
    found = f"burn rate {rate}, allowed {limit} ({good} of {events} good in {evidence['window']})"
    return f"{found}; {why}" if why else found


KIND = GateKind(
    name=TYPE,
    label="SLO",
    summary="SLO {slo}, burn rate over {window} at most {max_burn_rate}",
    passes_when="the burn rate in the window, within the step, is low enough",
    fields=(
        SLO_FIELD,
        GateField("window", "Window", check_duration, "5m"),
        GateField("max_burn_rate", "Maximum burn rate", number_between(0, 10**6), 1, input=NUMBER),
        MIN_EVENTS_FIELD,
        GateField(
            "min_bad", "Minimum bad events", whole_number_between(1, 10**9), MIN_BAD, input=NUMBER
        ),
    ),
    look_up=gates.find_observations,
    evaluate=evaluate,
    position=10,
    subject="SLO {slo}",
    finding=describe_finding,
    is_stored=True,
)

GATE_KINDS.register(KIND)


def _read_count(value: Any) -> float | None:
    """Return a count in the evidence, which may be a fraction; None if the value is invalid."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2**63:
        return None
    return value
