"""The gate kind of a closed breaker, and the answers to its questions."""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from breakers import names
from breakers.sql import fetch_all
from controlplane.core.canonical import timestamp
from controlplane.core.gates import services as gates
from controlplane.core.gates.fields import GateField, check_text
from controlplane.core.gates.kinds import GateKind
from controlplane.core.gates.models import Gate
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateAnswer
from controlplane.core.gates.verdicts import evaluate_observation
from controlplane.core.instances.queries import HEARD_WITHIN

TYPE = "breaker"
REFRESH_AFTER = timedelta(seconds=15)
"""An answer that stays the same is written anew this often: whoever asked takes it for a minute."""
MAX_NAMED = 5

# However many gates ask, each dependency is looked at once.
_SEEN = """
    SELECT d.caller || '->' || d.callee, count(*),
           count(*) FILTER (WHERE s.state = 'open'),
           count(*) FILTER (WHERE s.state = 'half_open'),
           count(*) FILTER (WHERE s.mode <> 'normal'),
           min(i.reported_at),
           (array_agg(i.id ORDER BY i.id) FILTER (WHERE s.state = 'open'))[1:%(most)s]
    FROM unnest(%(callers)s::text[], %(callees)s::text[]) AS asked (caller, callee)
    JOIN breakers_dependency d ON d.caller = asked.caller AND d.callee = asked.callee
    JOIN breakers_breakerstate s ON s.dependency_id = d.id
    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
    WHERE i.reported_at >= %(fresh)s
    GROUP BY d.id
"""


@dataclass(frozen=True)
class FreshBreakers:
    """The breakers of a dependency in fresh instances, counted by state.

    `blinded` instances have a mode forced by an operator; `oldest` is the earliest of their last
    reports.
    """

    instances: int
    open: int
    half_open: int
    blinded: int
    oldest: datetime
    open_in: tuple[str, ...] = ()


def answer_open(now: datetime) -> int:
    """Answer every open question about a breaker; returns how many answers were written."""
    questions = list(gates.find_open_gates(TYPE).order_by("pk"))
    if not questions:
        return 0
    seen = read_fresh_breakers({_gate_dependency(one) for one in questions}, now)
    return sum(_answer(one, seen.get(_gate_dependency(one)), now) for one in questions)


def read_fresh_breakers(wanted: Collection[str], now: datetime) -> dict[str, FreshBreakers]:
    """Return the fresh breakers of these dependencies by name (`core->oracle`), by one query.

    A dependency without a recent report is left out.
    """
    pairs = sorted({pair for name in wanted if (pair := names.split_name(name))})
    if not pairs:
        return {}
    given: dict[str, Any] = {
        "callers": [caller for caller, _ in pairs],
        "callees": [callee for _, callee in pairs],
        "fresh": now - HEARD_WITHIN,
        "most": MAX_NAMED,
    }
    rows = fetch_all(_SEEN, given)
    return {name: _parse_row(*figures) for name, *figures in rows}


def judge_gate(name: str, seen: FreshBreakers | None, since: datetime) -> GateAnswer:
    """Return the verdict about a dependency.

    It is FAIL while a fresh breaker is open, PASS once all are closed in normal mode by reports
    made since the question was asked, and NO_DATA, with the reason, otherwise.
    """
    if seen is None:
        why = f"no instance has reported {name} within {HEARD_WITHIN.seconds} s"
        return GateAnswer(NO_DATA, {"dependency": name, "instances": 0, "why": why})
    evidence = _evidence(name, seen)
    if seen.open:
        why = f"it is open in {seen.open:,} of {_count_instances(seen.instances)}"
        return GateAnswer(FAIL, {**evidence, "open_in": [*seen.open_in], "why": why})
    if seen.blinded:
        why = f"an override blinds {seen.blinded:,} of {_count_instances(seen.instances)}"
    elif seen.half_open:
        why = f"it is half-open in {seen.half_open:,} of {_count_instances(seen.instances)}"
    elif seen.oldest < since:
        why = f"not all of {_count_instances(seen.instances)} have reported since the step began"
    else:
        return GateAnswer(PASS, evidence)
    return GateAnswer(NO_DATA, {**evidence, "why": why})


def _parse_row(*columns: Any) -> FreshBreakers:
    instances, is_open, half_open, blinded, oldest, open_in = columns
    return FreshBreakers(instances, is_open, half_open, blinded, oldest, tuple(open_in or ()))


def _evidence(name: str, seen: FreshBreakers) -> dict[str, Any]:
    return {
        "dependency": name,
        "instances": seen.instances,
        "closed": seen.instances - seen.open - seen.half_open,
        "open": seen.open,
        "half_open": seen.half_open,
        "blinded": seen.blinded,
    }


def _answer(gate: Gate, seen: FreshBreakers | None, now: datetime) -> bool:
    given = judge_gate(_gate_dependency(gate), seen, gate.since)
    if _is_unchanged(gate, given, now):
        return False
    evidence: Mapping[str, Any] = {**given.evidence, "looked_at": timestamp(now)}
    return gates.record_answer(
        key=gate.key, verdict=given.verdict, evidence=evidence, observed_at=now, now=now
    )


def _is_unchanged(gate: Gate, given: GateAnswer, now: datetime) -> bool:
    """Return True if the same answer was written a moment ago.

    Thousands of ramps may ask each second.
    """
    said = {name: value for name, value in gate.evidence.items() if name != "looked_at"}
    if gate.observed_at is None or (gate.verdict, said) != (given.verdict, dict(given.evidence)):
        return False
    return gate.since <= gate.observed_at and now - REFRESH_AFTER < gate.observed_at <= now


def _gate_dependency(gate: Gate) -> str:
    return str(gate.spec.get("dependency", ""))[:200]


def _count_instances(count: int) -> str:
    return f"{count:,} instance{'' if count == 1 else 's'}"


def check_dependency(value: Any) -> str:
    """Check the name of a dependency, such as `core->oracle`."""
    caller, arrow, callee = check_text(value).partition("->")
    if not arrow or not caller.strip() or not callee.strip():
        raise ValueError("Must be a dependency such as `core->oracle`.")
    return f"{caller.strip()}->{callee.strip()}"


KIND = GateKind(
    name=TYPE,
    label="Breaker",
    summary="breaker {dependency}",
    passes_when="every fresh instance's breaker is closed",
    fields=(GateField("dependency", "Dependency", check_dependency, placeholder="core->oracle"),),
    look_up=gates.find_observations,
    evaluate=functools.partial(
        evaluate_observation, missing="nobody has looked at this breaker yet"
    ),
    position=20,
    is_stored=True,
)
