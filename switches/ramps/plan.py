"""The plan of a ramp: steps with their share, dwell and gates; read strictly, defaults filled in.

Pure: JSON in, plain JSON out, as it is kept.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from controlplane.core import durations
from controlplane.core.errors import InvalidInput

MAX_STEPS = 20
MAX_GATES = 20
MAX_DWELL_SECONDS = 7 * 24 * 3600
MAX_HOLD_LIMIT_SECONDS = 24 * 3600
DWELL_SECONDS = 300
MAX_HOLD_SECONDS = 3600
APPROVAL_SECONDS = 2 * 3600
DEFAULT_PERCENTS = (5, 25, 100)
EVERYTHING = 100
MAX_EARLY_PERCENT = 25
MIN_EARLY_SECONDS = 60
"""A plan is hasty if it spends less time than this at `MAX_EARLY_PERCENT` or less."""

Check = Callable[[Any], Any]
"""Gives the value as it is kept; raises ValueError with a sentence that says what it must be."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")


def _number(lowest: float, highest: float) -> Check:
    def check(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not lowest <= value <= highest:
            raise ValueError(f"Must be a number from {lowest:g} to {highest:g}.")
        return int(value) if float(value).is_integer() else value

    return check


def _whole(lowest: int, highest: int) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError(f"Must be a whole number from {lowest} to {highest}.")
        return value

    return check


def _percent(value: Any) -> Any:
    kept = _number(0.01, EVERYTHING)(value)
    if round(kept, 2) != kept:
        raise ValueError("Must have at most two decimals.")
    return kept


def _gate_name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("Must be 1 to 120 letters, digits, `.`, `_` or `-`.")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or "\x00" in value:
        raise ValueError("Must be a name of 1 to 200 characters.")
    return value.strip()


def _dependency(value: Any) -> str:
    caller, arrow, callee = _text(value).partition("->")
    if not arrow or not caller.strip() or not callee.strip():
        raise ValueError("Must be a dependency such as `core->oracle`.")
    return f"{caller.strip()}->{callee.strip()}"


def _window(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("Must be a duration such as `5m`.")
    durations.parse(value)
    return value


_REQUIRED = object()
_EVENTS = (_whole(1, 10**9), 100)
GATES: Mapping[str, Mapping[str, tuple[Check, Any]]] = {
    "slo": {
        "slo": (_text, _REQUIRED),
        "window": (_window, "5m"),
        "max_burn_rate": (_number(0, 10**6), 1),
        "min_events": _EVENTS,
        "min_bad": (_whole(1, 10**9), 3),
    },
    "breaker": {"dependency": (_dependency, _REQUIRED)},
    "manual": {"timeout_seconds": (_whole(1, MAX_DWELL_SECONDS), APPROVAL_SECONDS)},
    "samples": {"slo": (_text, _REQUIRED), "min_events": _EVENTS},
    "external": {"gate": (_gate_name, _REQUIRED)},
}
"""The fields of each type of gate, with what they are by default."""

TAKES_BACK = frozenset({"slo", "breaker", "external"})
"""Gates that find by themselves that something goes wrong; the others only wait."""

_STEP: Mapping[str, tuple[Check, Any]] = {
    "percent": (_percent, _REQUIRED),
    "dwell_seconds": (_number(0, MAX_DWELL_SECONDS), DWELL_SECONDS),
    "max_hold_seconds": (_number(0, MAX_HOLD_LIMIT_SECONDS), MAX_HOLD_SECONDS),
}


def default() -> list[dict[str, Any]]:
    """5, 25 and 100 %, five minutes each, without gates."""
    return read([{"percent": percent} for percent in DEFAULT_PERCENTS])


def read(plan: Any, max_hold_seconds: Any = None) -> list[dict[str, Any]]:
    """The plan as it is kept; :func:`default` for None.

    `max_hold_seconds` is that of steps that name none. Raises :class:`InvalidInput` that names each
    wrong field (`plan[1].gates[0].slo`).
    """
    errors: dict[str, list[str]] = {}
    if max_hold_seconds is not None:
        max_hold_seconds = _checked(
            _STEP["max_hold_seconds"][0], max_hold_seconds, "max_hold_seconds", errors
        )
    given = [{"percent": percent} for percent in DEFAULT_PERCENTS] if plan is None else plan
    steps = _steps(given, max_hold_seconds, errors)
    if not errors:
        _in_order(steps, errors)
    if errors:
        raise InvalidInput(errors)
    return steps


def is_at_once(plan: list[dict[str, Any]]) -> bool:
    """Whether it waits for nothing before everything flows, neither by a dwell nor by a gate: an
    immediate release by another name."""
    return not any(step["dwell_seconds"] or step["gates"] for step in plan[:-1])


def is_hasty(plan: list[dict[str, Any]]) -> bool:
    """Return True if most traffic flows before anybody could see the effect of a small share.

    Such a plan needs a second person wherever an immediate release does. Gates don't count: they
    may pass in a moment.
    """
    early: list[float] = [
        step["dwell_seconds"] for step in plan if step["percent"] <= MAX_EARLY_PERCENT
    ]
    return sum(early) < MIN_EARLY_SECONDS


def _steps(given: Any, max_hold: Any, errors: dict[str, list[str]]) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_STEPS:
        errors["plan"] = [f"Must be a list of 1 to {MAX_STEPS} steps."]
        return []
    found = []
    for index, step in enumerate(given):
        where = f"plan[{index}]"
        if not isinstance(step, dict):
            errors[where] = ['Must be an object such as {"percent": 5, "dwell_seconds": 300}.']
            continue
        plain = {key: value for key, value in step.items() if key != "gates"}
        if max_hold is not None:
            plain.setdefault("max_hold_seconds", max_hold)
        kept = _fields(_STEP, plain, where, errors)
        found.append({**kept, "gates": _gates(step.get("gates"), f"{where}.gates", errors)})
    return found


def _gates(given: Any, where: str, errors: dict[str, list[str]]) -> list[dict[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > MAX_GATES:
        errors[where] = [f"Must be a list of at most {MAX_GATES} gates."]
        return []
    found: list[dict[str, Any]] = []
    for index, gate in enumerate(given):
        here = f"{where}[{index}]"
        kind = gate.get("type") if isinstance(gate, dict) else None
        if not isinstance(kind, str) or kind not in GATES:
            errors[f"{here}.type"] = [f"Must be one of {', '.join(GATES)}."]
            continue
        plain = {key: value for key, value in gate.items() if key != "type"}
        kept = {"type": kind, **_fields(GATES[kind], plain, here, errors)}
        if kept in found or (kind == "manual" and any(one["type"] == kind for one in found)):
            errors[here] = ["The step has this gate already."]
        found.append(kept)
    return found


def _fields(
    known: Mapping[str, tuple[Check, Any]],
    given: Mapping[str, Any],
    where: str,
    errors: dict[str, list[str]],
) -> dict[str, Any]:
    for name in given:
        if name not in known:
            errors[f"{where}.{name}"[:200]] = [f"Unknown; the fields are {', '.join(known)}."]
    kept = {}
    for name, (check, default) in known.items():
        value = given.get(name)
        if value is not None:
            kept[name] = _checked(check, value, f"{where}.{name}", errors)
        elif default is _REQUIRED:
            errors[f"{where}.{name}"] = ["Is required."]
        else:
            kept[name] = default
    return kept


def _checked(check: Check, value: Any, where: str, errors: dict[str, list[str]]) -> Any:
    try:
        return check(value)
    except ValueError as error:
        errors[where] = [str(error)]
        return None


def _in_order(steps: list[dict[str, Any]], errors: dict[str, list[str]]) -> None:
    for index in range(1, len(steps)):
        if steps[index]["percent"] <= steps[index - 1]["percent"]:
            errors[f"plan[{index}].percent"] = [
                f"Must be more than the {steps[index - 1]['percent']} % of the step before."
            ]
    if steps[-1]["percent"] != EVERYTHING:
        errors[f"plan[{len(steps) - 1}].percent"] = ["The last step has to be 100 %."]
