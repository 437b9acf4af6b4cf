"""Validation and defaults of ramp plans: steps with share, dwell and gates."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from controlplane.core.errors import InvalidInput
from controlplane.core.gates.fields import (
    DURATION,
    NUMBER,
    GateField,
    check_fields,
    check_value,
    number_between,
)
from controlplane.core.gates.kinds import GATE_KINDS

MAX_STEPS = 20
MAX_GATES = 20
MAX_DWELL_SECONDS = 7 * 24 * 3600
MAX_HOLD_LIMIT_SECONDS = 24 * 3600
DWELL_SECONDS = 300
MAX_HOLD_SECONDS = 3600
DEFAULT_PERCENTS = (5, 25, 100)
EVERYTHING = 100
MAX_EARLY_PERCENT = 25
MIN_EARLY_SECONDS = 60
"""Minimum total dwell in seconds at shares up to `MAX_EARLY_PERCENT`; a shorter plan is hasty."""


def _check_percent(value: Any) -> Any:
    percent = number_between(0.01, EVERYTHING)(value)
    if round(percent, 2) != percent:
        raise ValueError("Must have at most two decimals.")
    return percent


STEP_FIELDS = (
    GateField("percent", "Share, %", _check_percent, input=NUMBER, placeholder="25"),
    GateField(
        "dwell_seconds",
        "Dwell",
        number_between(0, MAX_DWELL_SECONDS),
        DWELL_SECONDS,
        input=DURATION,
        placeholder="5m",
    ),
    GateField(
        "max_hold_seconds",
        "Maximum hold without data",
        number_between(0, MAX_HOLD_LIMIT_SECONDS),
        MAX_HOLD_SECONDS,
        input=DURATION,
        placeholder="1h",
    ),
)


def read_plan(plan: Any = None, max_hold_seconds: Any = None) -> list[dict[str, Any]]:
    """Return a validated plan with defaults filled in.

    None means the default plan: 5, 25 and 100 %, five minutes each, without gates.
    `max_hold_seconds` applies to steps that omit it. Raise :class:`InvalidInput` with an error per
    invalid field, such as `plan[1].gates[0].slo`.
    """
    errors: dict[str, list[str]] = {}
    if max_hold_seconds is not None:
        check = STEP_FIELDS[-1].check
        max_hold_seconds = check_value(check, max_hold_seconds, "max_hold_seconds", errors)
    steps_given = [{"percent": percent} for percent in DEFAULT_PERCENTS] if plan is None else plan
    steps = _read_steps(steps_given, max_hold_seconds, errors)
    if not errors:
        errors |= _find_order_errors(steps)
    if errors:
        raise InvalidInput(errors)
    return steps


def is_immediate(plan: list[dict[str, Any]]) -> bool:
    """Return True if the plan never waits: no step before the last has a dwell or a gate."""
    return not any(step["dwell_seconds"] or step["gates"] for step in plan[:-1])


def is_hasty(plan: list[dict[str, Any]]) -> bool:
    """Return True if the plan spends under a minute at shares of 25 % or less.

    Such a plan needs a second person wherever an immediate release does. Gates don't count
    because they may pass at once.
    """
    early: list[float] = [
        step["dwell_seconds"] for step in plan if step["percent"] <= MAX_EARLY_PERCENT
    ]
    return sum(early) < MIN_EARLY_SECONDS


def _read_steps(steps: Any, max_hold: Any, errors: dict[str, list[str]]) -> list[dict[str, Any]]:
    if not isinstance(steps, list) or not 1 <= len(steps) <= MAX_STEPS:
        errors["plan"] = [f"Must be a list of 1 to {MAX_STEPS} steps."]
        return []
    parsed = []
    for index, step in enumerate(steps):
        where = f"plan[{index}]"
        if not isinstance(step, dict):
            errors[where] = ['Must be an object such as {"percent": 5, "dwell_seconds": 300}.']
            continue
        plain = {key: value for key, value in step.items() if key != "gates"}
        if max_hold is not None:
            plain.setdefault("max_hold_seconds", max_hold)
        fields = check_fields(STEP_FIELDS, plain, where, errors)
        parsed.append({**fields, "gates": _read_gates(step.get("gates"), f"{where}.gates", errors)})
    return parsed


def _read_gates(gates: Any, where: str, errors: dict[str, list[str]]) -> list[dict[str, Any]]:
    if gates is None:
        return []
    if not isinstance(gates, list) or len(gates) > MAX_GATES:
        errors[where] = [f"Must be a list of at most {MAX_GATES} gates."]
        return []
    parsed: list[dict[str, Any]] = []
    for index, gate in enumerate(gates):
        here = f"{where}[{index}]"
        type_ = gate.get("type") if isinstance(gate, dict) else None
        kind = GATE_KINDS.get(type_) if isinstance(type_, str) else None
        if kind is None:
            errors[f"{here}.type"] = [f"Must be one of {', '.join(GATE_KINDS)}."]
            continue
        plain = {key: value for key, value in gate.items() if key != "type"}
        fields = {"type": kind.name, **check_fields(kind.fields, plain, here, errors)}
        is_there = any(other["type"] == kind.name for other in parsed)
        if fields in parsed or (kind.is_unique and is_there):
            errors[here] = ["The step already has this gate."]
        parsed.append(fields)
    return parsed


def _find_order_errors(steps: list[dict[str, Any]]) -> dict[str, list[str]]:
    percents = [step["percent"] for step in steps]
    errors = {
        f"plan[{index}].percent": [f"Must be more than the {before} % of the step before."]
        for index, (before, percent) in enumerate(pairwise(percents), 1)
        if percent <= before
    }
    if percents[-1] != EVERYTHING:
        errors[f"plan[{len(steps) - 1}].percent"] = ["The last step must be 100 %."]
    return errors


def list_slos(plan: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the SLOs that a plan's gates read."""
    return frozenset(str(gate["slo"]) for step in plan for gate in step["gates"] if "slo" in gate)
