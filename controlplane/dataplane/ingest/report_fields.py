"""The schema of a report as tables of fields, and its validator. Pure."""

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
COUNTERS = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")
"""Names of a breaker's counters."""
STATES = ("closed", "open", "half_open")
MODES = ("normal", "forced_open", "forced_closed", "disabled", "metrics_only")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)

Check = Callable[[Any], Any]
"""Returns the parsed value; raises ValueError with a message that states what is allowed."""


class ReportField(NamedTuple):
    """A field; without `required` it may be left out or null."""

    check: Check
    required: bool = False


class ListField(NamedTuple):
    """A list of at most `most` objects with these fields; `key` must be unique in the list.

    `together` checks the fields of one object against each other: it returns a wrong field, and
    why.
    """

    fields: Mapping[str, "ReportField | ListField | CountsField"]
    key: str | None = None
    required: bool = False
    together: Callable[[Mapping[str, Any]], tuple[str, str] | None] | None = None
    most: int = MAX_ELEMENTS


class CountsField(NamedTuple):
    """An object with counts of these names."""

    names: tuple[str, ...]
    known: frozenset[str]
    required: bool = False


def read(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's parsed fields; raise :class:`InvalidInput` naming the wrong ones."""
    errors: dict[str, list[str]] = {}
    result = _object(REPORT, document, "", errors)
    if errors:
        raise InvalidInput(dict(list(errors.items())[:MAX_ERRORS]))
    return result


def _object(
    fields: Mapping[str, ReportField | ListField | CountsField],
    value: Mapping[str, Any],
    path: str,
    errors: dict[str, list[str]],
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if not value.keys() <= fields.keys():
        _refuse_unknown(value, fields, path, errors)
    for name, field in fields.items():
        given = value.get(name)
        if given is None:
            if field.required:
                errors[path + name] = ["Is required."]
        elif isinstance(field, ReportField):
            try:
                result[name] = field.check(given)
            except ValueError as error:
                errors[path + name] = [str(error)]
        elif isinstance(field, ListField):
            result[name] = _list(field, given, path + name, errors)
        else:
            result[name] = _counts(field, given, path + name, errors)
        if len(errors) >= MAX_ERRORS:
            break
    return result


def _list(
    of: ListField, given: Any, path: str, errors: dict[str, list[str]]
) -> list[dict[str, Any]]:
    if not isinstance(given, list) or len(given) > of.most:
        errors[path] = [f"Must be a list of at most {of.most} objects."]
        return []
    result, keys = [], set()
    for index, element in enumerate(given):
        where = f"{path}[{index}]"
        if not isinstance(element, dict):
            errors[where] = ["Must be an object."]
        else:
            read_in = _object(of.fields, element, f"{where}.", errors)
            key = read_in.get(of.key) if of.key else None
            if key is not None and key in keys:
                errors[f"{where}.{of.key}"] = ["Is named twice in this list."]
            if of.together is not None and (wrong := of.together(read_in)):
                errors[f"{where}.{wrong[0]}"] = [wrong[1]]
            keys.add(key)
            result.append(read_in)
        if len(errors) >= MAX_ERRORS:
            break
    return result


def _counts(of: CountsField, given: Any, path: str, errors: dict[str, list[str]]) -> dict[str, int]:
    """Return all counts, 0 where the report has none."""
    if not isinstance(given, dict):
        errors[path] = ["Must be an object of counts."]
        return {}
    if not given.keys() <= of.known:
        _refuse_unknown(given, of.names, f"{path}.", errors)
    result: dict[str, int] = {}
    for name in of.names:
        number = given.get(name, 0)
        if type(number) is int and 0 <= number <= MAX_CALLS:  # Inlined _count, for speed.
            result[name] = number
        else:
            errors[f"{path}.{name}"] = [_NO_COUNT]
    return result


def _refuse_unknown(
    given: Iterable[str], known: Iterable[str], path: str, errors: dict[str, list[str]]
) -> None:
    unknown = sorted(set(given) - set(known))
    for name in unknown[:MAX_ERRORS]:
        errors[path + name[:MAX_NAME_LENGTH]] = [build_unknown_message(name, known, "field")]


def _part(value: Any) -> str:
    if not is_part(value):
        raise ValueError("Must be 1 to 120 printable characters without spaces or slashes.")
    return str(value)


def _service(value: Any) -> str:
    if isinstance(value, str) and value.startswith(TOKEN_PREFIX):
        raise ValueError(f"Must not begin with {TOKEN_PREFIX}")
    return _part(value)


def _uuid(value: Any) -> UUID:
    if isinstance(value, str) and len(value) == 36:
        try:
            return UUID(value)
        except ValueError:
            pass
    raise ValueError("Must be a UUID.")


def _moment(value: Any) -> datetime:
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError("Must be a time in RFC 3339, such as 2026-11-21T02:11:00Z.")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_INTEGER:
        raise ValueError("Must be a whole number from 0 to 2^63 - 1.")
    return value


_NO_COUNT = "Must be a whole number from 0 to 2^53, which every JSON reader can hold."


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_CALLS:
        raise ValueError(_NO_COUNT)
    return value


def _rate(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("Must be a share from 0 to 1.")
    return float(value)


def _cause(value: Any) -> str:
    """Return the text, truncated: a long cause must not prevent the report of an open breaker."""
    if not isinstance(value, str):
        raise ValueError("Must be a text; its first 1000 characters are kept.")
    return value[:MAX_CAUSE_LENGTH].replace("\x00", "\ufffd")


def _name(value: Any) -> str:
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= MAX_REPORTED_NAME_LENGTH
        or "\x00" in value
    ):
        raise ValueError(f"Must be a name of 1 to {MAX_REPORTED_NAME_LENGTH} characters.")
    return value


def _dependency(value: Any) -> str:
    if not isinstance(value, str) or names.split_name(value) is None:
        raise ValueError(
            "Must be caller->callee, each of 1 to 60 lower-case letters, digits and hyphens."
        )
    return value


def _good_of_total(sli: Mapping[str, Any]) -> tuple[str, str] | None:
    good, total = sli.get("good"), sli.get("total")
    if good is None or total is None or good <= total:
        return None
    return "good", "Must not be more than total."


def _switch(value: Any) -> str:
    if not isinstance(value, str) or not is_switch_id(value):
        raise ValueError("Must be a switch's id, such as segment:finance or global:all.")
    return value


def _one_of(*allowed: str) -> Check:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"Must be one of {', '.join(allowed)}.")
        return value

    return check


_state = _one_of(*STATES)
_mode = _one_of(*MODES)
_TRANSITION: Mapping[str, ReportField | ListField | CountsField] = {
    "n": ReportField(_whole, required=True),
    "from": ReportField(_state, required=True),
    "to": ReportField(_state, required=True),
    "at": ReportField(_moment, required=True),
    "cause": ReportField(_cause),
}
REPORT: Mapping[str, ReportField | ListField | CountsField] = {
    "service": ReportField(_service, required=True),
    "instance": ReportField(_part, required=True),
    "boot": ReportField(_uuid, required=True),
    "started_at": ReportField(_moment),
    "seq": ReportField(_whole, required=True),
    "sent_at": ReportField(_moment),
    "applied_version": ReportField(_whole),
    "config_version": ReportField(_whole),
    "checks": ListField(
        {
            "switch": ReportField(_switch, required=True),
            "allowed": ReportField(_count, required=True),
            "blocked": ReportField(_count, required=True),
        },
        key="switch",
    ),
    "breakers": ListField(
        {
            "dependency": ReportField(_dependency, required=True),
            "state": ReportField(_state, required=True),
            "mode": ReportField(_mode),
            "since": ReportField(_moment),
            "failure_rate": ReportField(_rate),
            "slow_rate": ReportField(_rate),
            "calls": ReportField(_count),
            "counters": CountsField(COUNTERS, frozenset(COUNTERS)),
            "transitions": ListField(_TRANSITION),
        },
        key="dependency",
        most=MAX_BREAKERS,
    ),
    "bulkheads": ListField(
        {
            "name": ReportField(_name, required=True),
            "in_flight": ReportField(_count, required=True),
            "limit": ReportField(_count, required=True),
            "queued": ReportField(_count),
            "queue_limit": ReportField(_count),
            "rejected": ReportField(_count),
        },
        key="name",
        most=MAX_BULKHEADS,
    ),
    "sli": ListField(
        {
            "slo": ReportField(_name, required=True),
            "good": ReportField(_whole, required=True),
            "total": ReportField(_whole, required=True),
        },
        key="slo",
        together=_good_of_total,
    ),
}
