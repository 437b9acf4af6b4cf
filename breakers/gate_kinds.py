"""The gate kind `breaker`, which passes while all breakers of a dependency are closed."""

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from breakers import names
from controlplane.core.canonical import timestamp
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.core.gates import services as gates
from controlplane.core.gates.fields import GateField, check_text
from controlplane.core.gates.kinds import GATE_KINDS, GateKind
from controlplane.core.gates.models import Gate
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateAnswer
from controlplane.core.gates.verdicts import evaluate_observation, get_explanation
from controlplane.core.instances.exports import UNSTOPPED_BOOT
from controlplane.core.sql import fetch_all

TYPE = "breaker"
DEPENDENCIES = "dependencies"
"""Name of the list of dependencies."""
REFRESH_AFTER = timedelta(seconds=15)
"""Interval at which an unchanged verdict is written again; ramps ignore one older than a minute."""
MAX_NAMED = 5

# Returns one row per dependency, even if several gates refer to it.
_FRESH_BREAKERS = f"""
    SELECT d.caller || '->' || d.callee, count(*),
           count(*) FILTER (WHERE s.state = 'open'),
           count(*) FILTER (WHERE s.state = 'half_open'),
           count(*) FILTER (WHERE s.mode <> 'normal'),
           min(i.reported_at),
           coalesce((array_agg(i.id ORDER BY i.id) FILTER (WHERE s.state = 'open'))[1:%(most)s],
                    '{{}}')
    FROM unnest(%(callers)s::text[], %(callees)s::text[]) AS wanted (caller, callee)
    JOIN breakers_dependency d ON d.caller = wanted.caller AND d.callee = wanted.callee
    JOIN breakers_breakerstate s ON s.dependency_id = d.id
    JOIN {UNSTOPPED_BOOT}
    WHERE i.reported_at >= %(fresh)s
    GROUP BY d.id
"""  # noqa: S608


@dataclass(frozen=True)
class FreshBreakers:
    """Breakers of a dependency in its reporting instances, counted by state.

    `blinded` counts breakers with a mode forced by an operator; `oldest` is the time of the
    earliest report, `open_in` the ids of up to five instances whose breaker is open.
    """

    instances: int
    open: int
    half_open: int
    blinded: int
    oldest: datetime
    open_in: Sequence[str] = ()


def answer_gates(now: datetime) -> int:
    """Evaluate all open gates of the kind `breaker`; return the number of verdicts written."""
    questions = list(gates.find_open_gates(TYPE).order_by("pk"))
    if not questions:
        return 0
    breakers = read_fresh_breakers({_gate_dependency(one) for one in questions}, now)
    written = 0
    for gate in questions:
        name = _gate_dependency(gate)
        answer = judge_gate(name, breakers.get(name), gate.since)
        if _is_unchanged(gate, answer, now):
            continue
        evidence = {**answer.evidence, "looked_at": timestamp(now)}
        written += gates.record_answer(
            key=gate.key, verdict=answer.verdict, evidence=evidence, observed_at=now, now=now
        )
    return written


def read_fresh_breakers(dependencies: Collection[str], now: datetime) -> dict[str, FreshBreakers]:
    """Return the breakers of these dependencies in reporting instances, by dependency name.

    A name is like `core->oracle`; a dependency without a reporting instance is left out.
    """
    pairs = sorted({pair for name in dependencies if (pair := names.split_name(name))})
    if not pairs:
        return {}
    values: dict[str, Any] = {
        "callers": [caller for caller, _ in pairs],
        "callees": [callee for _, callee in pairs],
        "fresh": now - INSTANCE_CADENCE,
        "most": MAX_NAMED,
    }
    return {name: FreshBreakers(*figures) for name, *figures in fetch_all(_FRESH_BREAKERS, values)}


def judge_gate(name: str, breakers: FreshBreakers | None, since: datetime) -> GateAnswer:
    """Return the verdict of a gate on the breakers of the dependency `name`.

    FAIL if a breaker is open; PASS if all are closed, in normal mode, and reported after `since`;
    otherwise NO_DATA with the reason.
    """
    if breakers is None:
        shown = names.format_name(name)
        why = f"no reporting instance has a breaker for {shown}"
        return GateAnswer(NO_DATA, {"dependency": name, "instances": 0, "why": why})
    evidence = {
        "dependency": name,
        "instances": breakers.instances,
        "closed": breakers.instances - breakers.open - breakers.half_open,
        "open": breakers.open,
        "half_open": breakers.half_open,
        "blinded": breakers.blinded,
    }
    if breakers.open:
        why = f"open in {names.format_instances(breakers.open, breakers.instances)}"
        return GateAnswer(FAIL, {**evidence, "open_in": [*breakers.open_in], "why": why})
    if breakers.blinded:
        hidden = names.format_instances(breakers.blinded, breakers.instances)
        why = f"an override hides the state in {hidden}"
    elif breakers.half_open:
        why = f"half-open in {names.format_instances(breakers.half_open, breakers.instances)}"
    elif breakers.oldest < since:
        why = f"not all of {breakers.instances:,} instances have reported since the step began"
        if breakers.instances == 1:
            why = "the only reporting instance has not reported since the step began"
    else:
        return GateAnswer(PASS, evidence)
    return GateAnswer(NO_DATA, {**evidence, "why": why})


def _is_unchanged(gate: Gate, answer: GateAnswer, now: datetime) -> bool:
    """Return True if the gate has the same verdict and evidence, written less than 15 s ago."""
    recorded = {name: value for name, value in gate.evidence.items() if name != "looked_at"}
    is_same = (gate.verdict, recorded) == (answer.verdict, dict(answer.evidence))
    if gate.observed_at is None or not is_same:
        return False
    return gate.since <= gate.observed_at and now - REFRESH_AFTER < gate.observed_at <= now


def _gate_dependency(gate: Gate) -> str:
    return str(gate.spec.get("dependency", ""))[:200]


def check_dependency(value: Any) -> str:
    """Validate a dependency's name; return it without spaces around caller and callee.

    Raise ValueError for anything but a name like `core->oracle`.
    """
    caller, arrow, callee = check_text(value).partition("->")
    if not arrow or not caller.strip() or not callee.strip():
        raise ValueError("Must be a dependency such as `core->oracle`.")
    return f"{caller.strip()}->{callee.strip()}"


def describe_finding(_spec: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Return `open in 1 of 2 instances`, or in how many instances the breaker is closed."""
    if (why := get_explanation(evidence)) or "closed" not in evidence:
        return why
    return f"closed in {names.format_instances(evidence['closed'], evidence['instances'])}"


KIND = GateKind(
    name=TYPE,
    label="Breaker",
    summary="breaker {dependency}",
    passes_when="the breaker is closed in all reporting instances",
    fields=(
        GateField(
            "dependency",
            "Dependency",
            check_dependency,
            placeholder="core->oracle",
            options=DEPENDENCIES,
            show=names.format_name,
        ),
    ),
    look_up=gates.find_observations,
    evaluate=functools.partial(
        evaluate_observation, missing="this breaker has not been evaluated yet"
    ),
    position=20,
    finding=describe_finding,
    is_stored=True,
)
GATE_KINDS.register(KIND)
