"""Validation and completion of a dependency's policy document. Pure."""

import functools
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from breakers.policies import values
from breakers.policies.parameters import (
    ALIASES,
    COUNT,
    QUEUE_SECONDS,
    SECTIONS,
    TIERS,
    TIME,
    WINDOW_SIZES,
    section_parameters,
)
from controlplane.core import durations, json_values
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from controlplane.core.scopes import is_trippable

MAX_ROUTES = 200
ROUTE_FIELDS = ("pattern", "timeout_ms", "reason")
OUTAGE_ACTIONS = ("trip", "fallback")
MAX_FALLBACK_PERIOD = timedelta(days=30)
"""Maximum of `expires_in` for the outage action `fallback`."""
OUTAGE_FIELDS = ("action", "switch", "open_share", "for_seconds", "expires_in")


def validate_policy(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the complete policy document for `fields`, with defaults filled in.

    A section that is left out or null becomes null. Raise :class:`InvalidInput`, whose errors name
    each wrong field (`breaker.window_size`).
    """
    errors: Errors = {}
    document: dict[str, Any] = _read_section("", fields, errors, also=("routes", *SECTIONS))
    document["routes"] = _validate_routes(fields.get("routes"), errors)
    for section in SECTIONS:
        given = fields.get(section)
        if given is not None and not isinstance(given, Mapping):
            add_error(errors, section, "Must be an object, or null.")
            given = None
        document[section] = None if given is None else _SECTIONS[section](given, errors)
    json_values.check_web_url("runbook_url", document["runbook_url"], errors)
    if errors:
        raise InvalidInput(errors)
    return document


def remove_aliases(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy without aliases, which are second names of breaker parameters."""
    breaker = document.get("breaker")
    if not breaker:
        return dict(document)
    return {**document, "breaker": {k: v for k, v in breaker.items() if k not in ALIASES}}


def validate_outage(value: Any) -> dict[str, Any]:
    """Return the complete outage policy, empty if `value` is null or empty.

    For example `{"action": "trip", "switch": "segment:finance", "open_share": 0.5, "for_seconds":
    30, "expires_in": "1h"}`; the action `fallback` takes no switch. Raise :class:`InvalidInput`.
    """
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput({"on_outage": ["Must be an object, or null."]})
    errors: Errors = {}
    json_values.refuse_unknown("on_outage", value, OUTAGE_FIELDS, errors)
    action = json_values.read_choice(
        "on_outage.action", value.get("action"), OUTAGE_ACTIONS, errors
    )
    document = {
        "action": action,
        "open_share": json_values.read_number(
            "on_outage.open_share", value.get("open_share", 0.5), 0.01, 1, errors
        ),
        "for_seconds": json_values.read_number(
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
        add_error(errors, "on_outage.switch", "Name the switch to engage, such as segment:finance.")
    elif action == "fallback" and switch:
        add_error(errors, "on_outage.switch", "Only the action trip has a switch.")
    if errors:
        raise InvalidInput(errors)
    return {**document, "switch": switch} if action == "trip" else document


def _read_section(
    section: str, given: Mapping[str, Any], errors: Errors, *, also: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the values of all parameters of a policy section, with defaults for missing ones.

    Keys in `also` are accepted and ignored; other unknown keys are errors.
    """
    table = {one.name: one for one in section_parameters(section)}
    json_values.refuse_unknown(section, given, (*table, *also), errors)
    return {
        name: values.read_parameter(one, given.get(name), errors) for name, one in table.items()
    }


def _validate_breaker(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    """Return the complete breaker section; aliases set the parameters they name, and are kept."""
    plain = {name: value for name, value in given.items() if name not in ALIASES}
    aliases = {name: given[name] for name in ALIASES if given.get(name) is not None}
    if "window_seconds" in aliases:
        _apply_alias("window_type", plain, TIME, errors)
    for alias, name in ALIASES.items():
        if alias in aliases:
            _apply_alias(name, plain, aliases[alias], errors)
    kind = plain.get("window_type")
    if plain.get("window_size") is None:
        plain["window_size"] = WINDOW_SIZES[TIME if kind == TIME else COUNT]
    found = {**_read_section("breaker", plain, errors), **aliases}
    open_seconds, longest = found["open_seconds"], found["open_max_seconds"]
    if values.are_numbers(open_seconds, longest) and open_seconds > longest:
        if given.get("open_max_seconds") is not None:
            message = f"Must be at least open_seconds, {open_seconds}."
            add_error(errors, "breaker.open_max_seconds", message)
        found["open_max_seconds"] = open_seconds
    _refuse_ineffective(found, errors)
    return found


def _refuse_ineffective(found: Mapping[str, Any], errors: Errors) -> None:
    """Record an error for a breaker that could never open, or probe more at once than in total."""
    pairs = [
        (
            "failure_count",
            "window_size",
            "The window counts only {} calls, so the breaker could never open.",
        ),
        ("half_open_concurrent", "half_open_calls", "Must be at most half_open_calls, {}."),
    ]
    for name, bound, message in pairs[found["window_type"] != COUNT :]:
        value, most = found[name], found[bound]
        wrong_already = errors.keys() & {f"breaker.{name}", f"breaker.{bound}"}
        if values.are_numbers(value, most) and value > most and not wrong_already:
            add_error(errors, f"breaker.{name}", message.format(most))


def _apply_alias(name: str, plain: dict[str, Any], value: Any, errors: Errors) -> None:
    """Set `plain[name]` to the value of its alias; record an error if it has another value."""
    if plain.get(name) not in (None, value):
        add_error(
            errors, f"breaker.{name}", f"Conflicts with its alias: {plain[name]!r} and {value!r}."
        )
    plain[name] = value


def _validate_retry(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    found = _read_section("retry", given, errors)
    base, cap = found["base_seconds"], found["cap_seconds"]
    if values.are_numbers(base, cap) and base > cap:
        if given.get("cap_seconds") is not None:
            add_error(errors, "retry.cap_seconds", f"Must be at least base_seconds, {base}.")
        found["cap_seconds"] = base
    if both := [str(one) for one in found["never"] if one in found["retry_on"]]:
        add_error(
            errors,
            "retry.never",
            f"Listed both as retried and as never retried: {', '.join(both)}.",
        )
    return found


def _validate_bulkhead(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    tier = given.get("tier")
    preset = TIERS.get(tier, {}) if isinstance(tier, str) else {}
    own = {name: value for name, value in given.items() if value is not None}
    found = _read_section("bulkhead", {**preset, **own}, errors)
    if found["queue_seconds"] is None:
        found["queue_seconds"] = QUEUE_SECONDS if found["queue"] else 0
    if found["limit"] is None and "bulkhead.limit" not in errors and "bulkhead.tier" not in errors:
        add_error(errors, "bulkhead.limit", f"Set a limit, or a tier: {', '.join(TIERS)}.")
    low, limit, high = found["min_limit"], found["limit"], found["max_limit"]
    if values.are_numbers(low, limit) and low > limit:
        add_error(errors, "bulkhead.min_limit", f"Must be at most limit, {limit}.")
    if values.are_numbers(high, limit) and high < limit:
        add_error(errors, "bulkhead.max_limit", f"Must be at least limit, {limit}.")
    return found


def _validate_budget(given: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    found = _read_section("budget", given, errors)
    if given.get("tokens") is None and given.get("per_key_tokens") is None:
        add_error(errors, "budget.tokens", "Set tokens or per_key_tokens.")
    return found


_SECTIONS: Mapping[str, Callable[[Mapping[str, Any], Errors], dict[str, Any]]] = {
    "breaker": _validate_breaker,
    "retry": _validate_retry,
    "bulkhead": _validate_bulkhead,
    "fallback": functools.partial(_read_section, "fallback"),
    "budget": _validate_budget,
}


def _validate_routes(given: Any, errors: Errors) -> list[dict[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > MAX_ROUTES:
        add_error(errors, "routes", f"Must be a list of at most {MAX_ROUTES}.")
        return []
    found, patterns = [], set()
    for place, route in enumerate(given):
        at = f"routes.{place}"
        if not isinstance(route, Mapping):
            add_error(errors, at, "Must be an object with pattern and timeout_ms.")
            continue
        json_values.refuse_unknown(at, route, ROUTE_FIELDS, errors)
        pattern = json_values.read_text(f"{at}.pattern", route.get("pattern"), 200, errors)
        if not pattern.startswith("/") or pattern in patterns:
            add_error(errors, f"{at}.pattern", "Must begin with / and be listed once.")
        patterns.add(pattern)
        reason = json_values.read_text(f"{at}.reason", route.get("reason"), 300, errors)
        timeout_ms = json_values.read_integer(
            f"{at}.timeout_ms", route.get("timeout_ms"), 1, 86_400_000, errors
        )
        one = {"pattern": pattern, "timeout_ms": timeout_ms}
        found.append({**one, "reason": reason} if reason else one)
    return found


def _validate_duration(given: Any, longest: timedelta | None, errors: Errors) -> str:
    try:
        lasts = durations.parse(given if isinstance(given, str) else "")
        if longest is not None and lasts > longest:
            raise ValueError(f"Must be at most {longest.days} days.")
        return durations.format_canonical(lasts)
    except ValueError as error:
        add_error(errors, "on_outage.expires_in", str(error))
        return ""
