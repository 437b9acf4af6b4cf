"""Validation and completion of a dependency's policy document. Pure."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from breakers.policies import values
from breakers.policies.addresses import find_web_problem
from breakers.policies.parameters import (
    ALIASES,
    COUNT,
    PARAMETERS,
    QUEUE_SECONDS,
    SECTIONS,
    TIERS,
    TIME,
    WINDOW_SIZES,
    section_parameters,
)
from breakers.policies.values import Errors, put
from controlplane.core import durations
from controlplane.core.errors import InvalidInput
from controlplane.core.scopes import is_trippable

__all__ = [
    "PARAMETERS",
    "SECTIONS",
    "hop_text",
    "validate_outage",
    "validate_policy",
    "without_aliases",
]

MAX_ROUTES = 200
ROUTE_FIELDS = ("pattern", "timeout_ms", "reason")
OUTAGE_ACTIONS = ("trip", "fallback")
MAX_FALLBACK_PERIOD = timedelta(days=30)
"""Longest duration of an override."""
OUTAGE_FIELDS = ("action", "switch", "open_share", "for_seconds", "expires_in")


def validate_policy(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The whole document of these fields, with the defaults of what they leave out.

    A section that is left out or null says nothing and stays null. Raises :class:`InvalidInput`,
    which names each wrong field (`breaker.window_size`).
    """
    errors: Errors = {}
    document: dict[str, Any] = _read_section("", fields, errors, also=("routes", *SECTIONS))
    document["routes"] = _validate_routes(fields.get("routes"), errors)
    for section in SECTIONS:
        given = fields.get(section)
        if given is not None and not isinstance(given, Mapping):
            put(errors, section, "Must be an object, or null.")
            given = None
        document[section] = None if given is None else _SECTIONS[section](given, errors)
    _check_address(document["runbook_url"], errors)
    if errors:
        raise InvalidInput(errors)
    return document


def without_aliases(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without the aliases of breaker parameters.

    Each parameter stands once then, and can be edited.
    """
    breaker = document.get("breaker")
    if not breaker:
        return dict(document)
    return {**document, "breaker": {k: v for k, v in breaker.items() if k not in ALIASES}}


def validate_outage(value: Any) -> dict[str, Any]:
    """Return the action on an outage of the callee; `{}` or null means none.

    `{"action": "trip", "switch": "segment:finance", "open_share": 0.5, "for_seconds": 30,
    "expires_in": "1h"}`, or `"fallback"` without a switch. Raises :class:`InvalidInput`.
    """
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput({"on_outage": ["Must be an object, or null."]})
    errors: Errors = {}
    values.refuse_unknown("on_outage", value, OUTAGE_FIELDS, errors)
    action = values.choice("on_outage.action", value.get("action"), OUTAGE_ACTIONS, errors)
    document = {
        "action": action,
        "open_share": values.number(
            "on_outage.open_share", value.get("open_share", 0.5), 0.01, 1, errors
        ),
        "for_seconds": values.number(
            "on_outage.for_seconds", value.get("for_seconds", 30), 0, 3600, errors
        ),
        "expires_in": _validate_duration(
            value.get("expires_in", "1h"),
            MAX_FALLBACK_PERIOD if action == "fallback" else None,
            errors,
        ),
    }
    switch = value.get("switch")
    if action == "trip" and not (isinstance(switch, str) and is_trippable(switch)):
        put(errors, "on_outage.switch", "Name the switch to stop, such as segment:finance.")
    elif action == "fallback" and switch:
        put(errors, "on_outage.switch", "Only trip takes a switch.")
    if errors:
        raise InvalidInput(errors)
    return {**document, "switch": switch} if action == "trip" else document


def hop_text(hop: Any) -> str:
    """Return a hop of a fallback chain as text."""
    if isinstance(hop, Mapping):
        return ", ".join(f"{key} {value}" for key, value in hop.items())
    return str(hop)


def _read_section(
    section: str, given: Mapping[str, Any], errors: Errors, *, also: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The section's parameters by their table, defaults where it names none."""
    table = {one.name: one for one in section_parameters(section)}
    values.refuse_unknown(section, given, (*table, *also), errors)
    return {
        name: values.read_parameter(one, given.get(name), errors) for name, one in table.items()
    }


def _breaker(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    """Validate the breaker section.

    The aliases `failure_threshold` and `window_seconds` are accepted and kept.
    """
    plain = {name: value for name, value in given.items() if name not in ALIASES}
    kept = {name: given[name] for name in ALIASES if given.get(name) is not None}
    if "window_seconds" in kept:
        _apply_alias("window_type", plain, TIME, errors)
    for alias, name in ALIASES.items():
        if alias in kept:
            _apply_alias(name, plain, kept[alias], errors)
    kind = plain.get("window_type")
    if plain.get("window_size") is None:
        plain["window_size"] = WINDOW_SIZES[TIME if kind == TIME else COUNT]
    found = {**_read_section("breaker", plain, errors), **kept}
    open_seconds, longest = found["open_seconds"], found["open_max_seconds"]
    if values.are_numbers(open_seconds, longest) and open_seconds > longest:
        if given.get("open_max_seconds") is not None:
            put(
                errors,
                "breaker.open_max_seconds",
                f"Must be at least open_seconds, {open_seconds}.",
            )
        found["open_max_seconds"] = open_seconds
    _refuse_ineffective(found, errors)
    return found


def _refuse_ineffective(found: Mapping[str, Any], errors: Errors) -> None:
    """Refuse a breaker that could never open or never get all its probes at once."""
    pairs = [
        ("failure_count", "window_size", "Only {} calls are counted: it never opens."),
        ("half_open_concurrent", "half_open_calls", "At most half_open_calls, {}."),
    ]
    for name, bound, said in pairs[found["window_type"] != COUNT :]:
        value, most = found[name], found[bound]
        wrong_already = errors.keys() & {f"breaker.{name}", f"breaker.{bound}"}
        if values.are_numbers(value, most) and value > most and not wrong_already:
            put(errors, f"breaker.{name}", said.format(most))


def _apply_alias(name: str, plain: dict[str, Any], value: Any, errors: Errors) -> None:
    """Set the parameter that an alias stands for; refuse a different value of its own."""
    if plain.get(name) not in (None, value):
        put(errors, f"breaker.{name}", f"Says {plain[name]!r}, and its other word {value!r}.")
    plain[name] = value


def _retry(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    found = _read_section("retry", given, errors)
    base, cap = found["base_seconds"], found["cap_seconds"]
    if values.are_numbers(base, cap) and base > cap:
        if given.get("cap_seconds") is not None:
            put(errors, "retry.cap_seconds", f"Must be at least base_seconds, {base}.")
        found["cap_seconds"] = base
    if both := [str(one) for one in found["never"] if one in found["retry_on"]]:
        put(errors, "retry.never", f"Retried and never retried: {', '.join(both)}.")
    return found


def _bulkhead(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    tier = given.get("tier")
    preset = TIERS.get(tier, {}) if isinstance(tier, str) else {}
    said = {name: value for name, value in given.items() if value is not None}
    found = _read_section("bulkhead", {**preset, **said}, errors)
    if found["queue_seconds"] is None:
        found["queue_seconds"] = QUEUE_SECONDS if found["queue"] else 0
    if found["limit"] is None and "bulkhead.limit" not in errors and "bulkhead.tier" not in errors:
        put(errors, "bulkhead.limit", f"Give a limit, or a tier: {', '.join(TIERS)}.")
    low, limit, high = found["min_limit"], found["limit"], found["max_limit"]
    if values.are_numbers(low, limit) and low > limit:
        put(errors, "bulkhead.min_limit", f"Must be at most limit, {limit}.")
    if values.are_numbers(high, limit) and high < limit:
        put(errors, "bulkhead.max_limit", f"Must be at least limit, {limit}.")
    return found


def _fallback(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    return _read_section("fallback", given, errors)


def _budget(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    found = _read_section("budget", given, errors)
    has_limit = any(given.get(name) is not None for name in ("tokens", "per_key_tokens"))
    if not has_limit:
        put(errors, "budget.tokens", "Set tokens or per_key_tokens.")
    return found


_SECTIONS = {
    "breaker": _breaker,
    "retry": _retry,
    "bulkhead": _bulkhead,
    "fallback": _fallback,
    "budget": _budget,
}


def _validate_routes(given: Any, errors: Errors) -> list[dict[str, Any]]:
    """Validate timeouts of some of the callee's paths; the first pattern that matches applies."""
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > MAX_ROUTES:
        put(errors, "routes", f"Must be a list of at most {MAX_ROUTES}.")
        return []
    found, seen = [], set()
    for place, route in enumerate(given):
        at = f"routes.{place}"
        if not isinstance(route, Mapping):
            put(errors, at, "Must be an object with pattern and timeout_ms.")
            continue
        values.refuse_unknown(at, route, ROUTE_FIELDS, errors)
        pattern = values.text(f"{at}.pattern", route.get("pattern"), 200, errors)
        if not pattern.startswith("/") or pattern in seen:
            put(errors, f"{at}.pattern", "Must begin with / and be there once.")
        seen.add(pattern)
        reason = values.text(f"{at}.reason", route.get("reason"), 300, errors)
        timeout_ms = values.whole(
            f"{at}.timeout_ms", route.get("timeout_ms"), 1, 86_400_000, errors
        )
        one = {"pattern": pattern, "timeout_ms": timeout_ms}
        found.append({**one, "reason": reason} if reason else one)
    return found


def _check_address(url: str, errors: Errors) -> None:
    if url and (said := find_web_problem(url)):
        put(errors, "runbook_url", said)


def _validate_duration(given: Any, longest: timedelta | None, errors: Errors) -> str:
    try:
        lasts = durations.parse(given if isinstance(given, str) else "")
        if longest is not None and lasts > longest:
            raise ValueError(f"At most {longest.days} days: nobody remembers longer.")
        return durations.canonical(lasts)
    except ValueError as error:
        put(errors, "on_outage.expires_in", str(error))
        return ""
