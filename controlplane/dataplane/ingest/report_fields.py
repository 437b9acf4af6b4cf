"""The fields of a report, declared as tables, and their validation. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from breakers import names
from controlplane.core.errors import InvalidInput
from controlplane.core.http.parameters import MAX_NAME_LENGTH, build_unknown_message
from controlplane.core.instances.rates import MAX_CALLS
from controlplane.dataplane.memory.instance_names import TOKEN_PREFIX, is_part
from switches.scopes import is_switch_id

MAX_INTEGER = 2**63 - 1
MAX_ELEMENTS = 1000
MAX_ERRORS = 20
MAX_BREAKERS = 500
MAX_BULKHEADS = 200
MAX_REPORTED_NAME_LENGTH = 200
MAX_CAUSE_LENGTH = 1000
MAX_ORDERS = 5000
COUNTERS = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")
STATES = ("closed", "open", "half_open")
MODES = ("normal", "forced_open", "forced_closed", "disabled", "metrics_only")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Check = Callable[[Any], Any]
"""Validates a field: returns the parsed value, or raises ValueError with a message."""


class ReportField(NamedTuple):
    """A field of a report; an optional field may be missing or null."""

    check: Check
    required: bool = False


class ListField(NamedTuple):
    """A field of a report: a list of at most `most` objects with the same fields.

    Values of the field `key` must be unique. `cross_check` compares fields of one object: it
    returns an invalid field and a message, or None.
    """

    fields: Mapping[str, "Field"]
    key: str | None = None
    required: bool = False
    cross_check: Callable[[Mapping[str, Any]], tuple[str, str] | None] | None = None
    most: int = MAX_ELEMENTS


class CountsField(NamedTuple):
    """A field of a report: an object of counters with the given names."""

    names: tuple[str, ...]
    known: frozenset[str]
    required: bool = False


Field = ReportField | ListField | CountsField


def validate_report(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parsed fields of a report; raise :class:`InvalidInput` like `read_fields`."""
    return read_fields(REPORT, document)


def read_fields(
    fields: Mapping[str, Field], document: Mapping[str, Any], path: str = ""
) -> dict[str, Any]:
    """Return the parsed fields of an object.

    Raise :class:`InvalidInput` naming the invalid fields, at most 20, with `path` before each.
    """
    errors: dict[str, list[str]] = {}
    result = _read_object(fields, document, path, errors)
    if errors:
        raise InvalidInput(dict(list(errors.items())[:MAX_ERRORS]))
    return result


def _read_object(
    fields: Mapping[str, Field],
    document: Mapping[str, Any],
    path: str,
    errors: dict[str, list[str]],
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if not document.keys() <= fields.keys():
        _refuse_unknown(document, fields, path, errors)
    for name, field in fields.items():
        value = document.get(name)
        if value is None:
            if field.required:
                errors[path + name] = ["Is required."]
        elif isinstance(field, ReportField):
            try:
                result[name] = field.check(value)
            except ValueError as error:
                errors[path + name] = [str(error)]
        elif isinstance(field, ListField):
            result[name] = _read_list(field, value, path + name, errors)
        else:
            result[name] = _read_counts(field, value, path + name, errors)
        if len(errors) >= MAX_ERRORS:
            break
    return result


def _read_list(
    field: ListField, value: Any, path: str, errors: dict[str, list[str]]
) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > field.most:
        errors[path] = [f"Must be a list of at most {field.most} objects."]
        return []
    result, keys = [], set()
    for index, element in enumerate(value):
        where = f"{path}[{index}]"
        if not isinstance(element, dict):
            errors[where] = ["Must be an object."]
        else:
            element_fields = _read_object(field.fields, element, f"{where}.", errors)
            key = element_fields.get(field.key) if field.key else None
            if key is not None and key in keys:
                errors[f"{where}.{field.key}"] = ["Is listed twice."]
            if field.cross_check is not None and (wrong := field.cross_check(element_fields)):
                errors[f"{where}.{wrong[0]}"] = [wrong[1]]
            keys.add(key)
            result.append(element_fields)
        if len(errors) >= MAX_ERRORS:
            break
    return result


def _read_counts(
    field: CountsField, value: Any, path: str, errors: dict[str, list[str]]
) -> dict[str, int]:
    """Return the counters of a field, 0 for those that are missing; add errors for invalid ones."""
    if not isinstance(value, dict):
        errors[path] = ["Must be an object of counts."]
        return {}
    if not value.keys() <= field.known:
        _refuse_unknown(value, field.names, f"{path}.", errors)
    result: dict[str, int] = {}
    for name in field.names:
        number = value.get(name, 0)
        if type(number) is int and 0 <= number <= MAX_CALLS:  # check_count inlined, for speed.
            result[name] = number
        else:
            errors[f"{path}.{name}"] = [_NO_COUNT]
    return result


def _refuse_unknown(
    names: Iterable[str], known: Iterable[str], path: str, errors: dict[str, list[str]]
) -> None:
    unknown = sorted(set(names) - set(known))
    for name in unknown[:MAX_ERRORS]:
        errors[path + name[:MAX_NAME_LENGTH]] = [build_unknown_message(name, known, "field")]


def check_part(value: Any) -> str:
    if not is_part(value):
        raise ValueError("Must be 1 to 120 printable characters without spaces or slashes.")
    return str(value)


def check_service(value: Any) -> str:
    if isinstance(value, str) and value.startswith(TOKEN_PREFIX):
        raise ValueError(f"Must not begin with {TOKEN_PREFIX}")
    return check_part(value)


def parse_uuid(value: Any) -> UUID:
    if isinstance(value, str) and len(value) == 36:
        try:
            return UUID(value)
        except ValueError:
            pass
    raise ValueError("Must be a UUID.")


def parse_order_ids(value: Any) -> tuple[str, ...]:
    """Return the ids of emergency orders in a list; what is none is left out, not refused."""
    if not isinstance(value, list):
        raise ValueError("Must be a list of ids.")
    ids = value[:MAX_ORDERS]
    return tuple(each for each in ids if isinstance(each, str) and _UUID.fullmatch(each))


def parse_time(value: Any) -> datetime:
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError("Must be a time in RFC 3339, such as 2026-11-21T02:11:00Z.")


def check_integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_INTEGER:
        raise ValueError("Must be a whole number from 0 to 2^63 - 1.")
    return value


_NO_COUNT = "Must be a whole number from 0 to 2^53."


def check_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_CALLS:
        raise ValueError(_NO_COUNT)
    return value


def parse_rate(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("Must be a share from 0 to 1.")
    return float(value)


def parse_cause(value: Any) -> str:
    """Return the cause of a transition; a text that is too long is cut, not refused."""
    if not isinstance(value, str):
        raise ValueError("Must be a string; its first 1000 characters are kept.")
    return value[:MAX_CAUSE_LENGTH].replace("\x00", "\ufffd")


def check_name(value: Any) -> str:
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= MAX_REPORTED_NAME_LENGTH
        or "\x00" in value
    ):
        raise ValueError(f"Must be a name of 1 to {MAX_REPORTED_NAME_LENGTH} characters.")
    return value


def check_dependency(value: Any) -> str:
    if not isinstance(value, str) or names.split_name(value) is None:
        raise ValueError(
            "Must be caller->callee, each of 1 to 60 lower-case letters, digits and hyphens."
        )
    return value


def _compare_good_and_total(sli: Mapping[str, Any]) -> tuple[str, str] | None:
    good, total = sli.get("good"), sli.get("total")
    if good is None or total is None or good <= total:
        return None
    return "good", "Must not be more than total."


def check_switch(value: Any) -> str:
    if not isinstance(value, str) or not is_switch_id(value):
        raise ValueError("Must be a switch id, such as segment:finance or global:all.")
    return value


def _make_choice_check(*allowed: str) -> Check:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"Must be one of {', '.join(allowed)}.")
        return value

    return check


check_state = _make_choice_check(*STATES)
check_mode = _make_choice_check(*MODES)
_TRANSITION: Mapping[str, Field] = {
    "n": ReportField(check_integer, required=True),
    "from": ReportField(check_state, required=True),
    "to": ReportField(check_state, required=True),
    "at": ReportField(parse_time, required=True),
    "cause": ReportField(parse_cause),
}
REPORT: Mapping[str, Field] = {
    "service": ReportField(check_service, required=True),
    "instance": ReportField(check_part, required=True),
    "boot": ReportField(parse_uuid, required=True),
    "started_at": ReportField(parse_time),
    "seq": ReportField(check_integer, required=True),
    "sent_at": ReportField(parse_time),
    "applied_version": ReportField(check_integer),
    "applied_orders": ReportField(parse_order_ids),
    "config_version": ReportField(check_integer),
    "checks": ListField(
        {
            "switch": ReportField(check_switch, required=True),
            "allowed": ReportField(check_count, required=True),
            "blocked": ReportField(check_count, required=True),
        },
        key="switch",
    ),
    "breakers": ListField(
        {
            "dependency": ReportField(check_dependency, required=True),
            "state": ReportField(check_state, required=True),
            "mode": ReportField(check_mode),
            "since": ReportField(parse_time),
            "failure_rate": ReportField(parse_rate),
            "slow_rate": ReportField(parse_rate),
            "calls": ReportField(check_count),
            "counters": CountsField(COUNTERS, frozenset(COUNTERS)),
            "transitions": ListField(_TRANSITION),
        },
        key="dependency",
        most=MAX_BREAKERS,
    ),
    "bulkheads": ListField(
        {
            "name": ReportField(check_name, required=True),
            "in_flight": ReportField(check_count, required=True),
            "limit": ReportField(check_count, required=True),
            "queued": ReportField(check_count),
            "queue_limit": ReportField(check_count),
            "rejected": ReportField(check_count),
        },
        key="name",
        most=MAX_BULKHEADS,
    ),
    "sli": ListField(
        {
            "slo": ReportField(check_name, required=True),
            "good": ReportField(check_integer, required=True),
            "total": ReportField(check_integer, required=True),
        },
        key="slo",
        cross_check=_compare_good_and_total,
    ),
}
