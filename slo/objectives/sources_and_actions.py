"""Validation of an SLO's source of counters, and of its alert actions. Pure."""

from collections.abc import Mapping
from typing import Any

from controlplane.core import durations, json_values
from controlplane.core.json_values import Errors, add_error
from slo.models.objective import HOLD_RAMPS, PROMETHEUS, PUSH, TRIP
from switches.scopes import GLOBAL, is_trippable

MAX_URL_LENGTH = 500
MAX_QUERY_LENGTH = 4000
MAX_ACTIONS = 10
ON = ("page", "ticket", "any")
ON_UNKNOWN = ("nothing", "act")
USUAL_EXPIRY = "1h"
MAX_DAYS = 30


def read_source(raw: Any, errors: Errors) -> dict[str, Any]:
    """Return the validated source of an SLO, `{"type": "push"}` by default."""
    if raw is None:
        return {"type": PUSH}
    if not isinstance(raw, Mapping):
        add_error(errors, "source", 'Must be an object, such as {"type": "push"}.')
        return {}
    kind = json_values.read_choice("source.type", raw.get("type", PUSH), (PUSH, PROMETHEUS), errors)
    known = ("type", "url", "good", "total") if kind != PUSH else ("type",)
    json_values.refuse_unknown("source", raw, known, errors)
    if kind != PROMETHEUS:
        return {"type": kind}
    return {
        "type": kind,
        "url": _read_server_url(raw.get("url"), errors),
        **{which: _read_query(f"source.{which}", raw.get(which), errors) for which in known[2:]},
    }


def read_actions(raw: Any, service: str, errors: Errors) -> list[dict[str, Any]]:
    """Return the validated alert actions of an SLO, each with all its fields."""
    if raw is None:
        return []
    if not isinstance(raw, list) or len(raw) > MAX_ACTIONS:
        add_error(errors, "actions", f"Must be a list of at most {MAX_ACTIONS}.")
        return []
    found: list[dict[str, Any]] = []
    for place, one in enumerate(raw):
        path = f"actions.{place}"
        if not isinstance(one, Mapping):
            add_error(errors, path, 'Must be an object, such as {"do": "hold_ramps"}.')
            continue
        action = _read_action(path, one, service, errors)
        if action in found:
            add_error(errors, path, f"Duplicate of action {found.index(action)}.")
        found.append(action)
    return found


def _read_action(path: str, raw: Mapping[str, Any], service: str, errors: Errors) -> dict[str, Any]:
    kind = json_values.read_choice(f"{path}.do", raw.get("do"), (TRIP, HOLD_RAMPS), errors)
    found = {
        "on": json_values.read_choice(f"{path}.on", raw.get("on") or "page", ON, errors),
        "do": kind,
        "on_unknown": json_values.read_choice(
            f"{path}.on_unknown", raw.get("on_unknown") or "nothing", ON_UNKNOWN, errors
        ),
    }
    if kind == TRIP:
        found |= _read_trip(path, raw, errors)
    elif kind and not service:
        add_error(errors, f"{path}.do", "Name the service, because the SLO has none.")
    if kind:
        json_values.refuse_unknown(path, raw, found, errors)
    return found


def _read_trip(path: str, raw: Mapping[str, Any], errors: Errors) -> dict[str, Any]:
    switch = raw.get("switch")
    if isinstance(switch, str) and switch.startswith(f"{GLOBAL.name}:"):
        add_error(errors, f"{path}.switch", "Only people can engage the global switch.")
    elif not (isinstance(switch, str) and is_trippable(switch)):
        message = "Name the switch to engage, such as experiment:new-planner."
        add_error(errors, f"{path}.switch", message)
    return {"switch": switch, "expires_in": _read_expiry(path, raw.get("expires_in"), errors)}


def _read_expiry(path: str, raw: Any, errors: Errors) -> str:
    try:
        duration = durations.parse(USUAL_EXPIRY if raw is None else str(raw))
        if duration.days > MAX_DAYS or duration.total_seconds() > MAX_DAYS * 86_400:
            raise ValueError(f"Must be at most {MAX_DAYS} days.")
        return durations.format_canonical(duration)
    except ValueError as error:
        add_error(errors, f"{path}.expires_in", str(error))
        return ""


def _read_server_url(raw: Any, errors: Errors) -> str:
    """Return the base URL of a Prometheus server, including any path prefix."""
    url = json_values.read_text("source.url", raw, MAX_URL_LENGTH, errors)
    if "source.url" in errors:
        return url
    parts = json_values.parse_web_url(url) if url.isascii() else None
    message = ""
    if parts is None:
        message = "Must be a URL starting with http:// or https://."
    elif parts.username is not None or parts.password is not None:
        message = "Leave out the user and password: everyone who can open this page sees the URL."
    elif parts.query or parts.fragment or url[-1] in "?#":
        message = "Leave out everything after the path: queries are added to it."
    if message:
        add_error(errors, "source.url", message)
    return url.rstrip("/")


def _read_query(path: str, raw: Any, errors: Errors) -> str:
    query = json_values.read_text(path, raw, MAX_QUERY_LENGTH, errors)
    if not query and path not in errors:
        add_error(errors, path, "Enter the PromQL of a counter, such as sum(http_requests_total).")
    return query
