"""The shape of a report: what each field must be, as tables, and one walk over them. Pure."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from controlplane.core.errors import InvalidInput
from controlplane.core.instances.rates import MOST_CALLS
from controlplane.dataplane.names import TOKEN_PREFIX, is_part
from switches.keys import PATTERN

LARGEST = 2**63 - 1
MOST_ELEMENTS = 1000
MOST_ERRORS = 20
LONGEST_SLO = 200
_SWITCH = re.compile(rf"(?:segment|feature|experiment):{PATTERN}|global:all", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)

Check = Callable[[Any], Any]
"""Gives what a value means; raises ValueError with a sentence that says what it must be."""


class Field(NamedTuple):
    """A field; without `required` it may be left out or null."""

    check: Check
    required: bool = False


class ListOf(NamedTuple):
    """A list of objects, each with these fields; `key` names one that no two may share.

    `together` looks at the fields of one object side by side: it names one that is wrong, and why.
    """

    fields: Mapping[str, "Field | ListOf | Counts"]
    key: str | None = None
    required: bool = False
    together: Callable[[Mapping[str, Any]], tuple[str, str] | None] | None = None


class Counts(NamedTuple):
    """An object whose values are counts."""

    required: bool = False


def read(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a report's fields mean, by name; raises :class:`InvalidInput` naming the wrong ones."""
    errors: dict[str, list[str]] = {}
    result = _object(REPORT, document, "", errors)
    if errors:
        raise InvalidInput(dict(list(errors.items())[:MOST_ERRORS]))
    return result


def _object(
    fields: Mapping[str, Field | ListOf | Counts],
    value: Mapping[str, Any],
    path: str,
    errors: dict[str, list[str]],
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, field in fields.items():
        given, where = value.get(name), f"{path}{name}"
        if len(errors) >= MOST_ERRORS:
            break
        if given is None:
            if field.required:
                errors[where] = ["Is required."]
        elif isinstance(field, ListOf):
            result[name] = _list(field, given, where, errors)
        elif isinstance(field, Counts):
            result[name] = _counts(given, where, errors)
        else:
            try:
                result[name] = field.check(given)
            except ValueError as error:
                errors[where] = [str(error)]
    return result


def _list(of: ListOf, given: Any, path: str, errors: dict[str, list[str]]) -> list[dict[str, Any]]:
    if not isinstance(given, list) or len(given) > MOST_ELEMENTS:
        errors[path] = [f"Must be a list of at most {MOST_ELEMENTS} objects."]
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
        if len(errors) >= MOST_ERRORS:
            break
    return result


def _counts(given: Any, path: str, errors: dict[str, list[str]]) -> dict[str, int]:
    if not isinstance(given, dict) or len(given) > MOST_ELEMENTS:
        errors[path] = ["Must be an object of counts."]
        return {}
    for name, number in given.items():
        try:
            _whole(number)
        except ValueError as error:
            errors[f"{path}.{name}"[:200]] = [str(error)]
    return given


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
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ValueError("Must be a whole number from 0 to 2^63 - 1.")
    return value


def _count(value: Any) -> int:
    if _whole(value) > MOST_CALLS:
        raise ValueError("Must be a whole number from 0 to 2^53, which every JSON reader can hold.")
    return int(value)


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ValueError("Must be a number, 0 or more.")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 1000:
        raise ValueError("Must be a text of 1 to 1000 characters.")
    return value


def _slo(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SLO or "\x00" in value:
        raise ValueError(f"Must be a name of 1 to {LONGEST_SLO} characters.")
    return value


def _good_of_total(sli: Mapping[str, Any]) -> tuple[str, str] | None:
    good, total = sli.get("good"), sli.get("total")
    if good is None or total is None or good <= total:
        return None
    return "good", "Must not be more than total."


def _switch(value: Any) -> str:
    if not isinstance(value, str) or not _SWITCH.fullmatch(value):
        raise ValueError("Must be a switch's id, such as segment:finance or global:all.")
    return value


def _one_of(*allowed: str) -> Check:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"Must be one of {', '.join(allowed)}.")
        return value

    return check


_state = _one_of("closed", "open", "half_open")
_mode = _one_of("normal", "forced_open", "forced_closed", "disabled", "metrics_only")
_TRANSITION: Mapping[str, Field | ListOf | Counts] = {
    "n": Field(_whole, required=True),
    "from": Field(_state, required=True),
    "to": Field(_state, required=True),
    "at": Field(_moment, required=True),
    "cause": Field(_text),
}
REPORT: Mapping[str, Field | ListOf | Counts] = {
    "service": Field(_service, required=True),
    "instance": Field(_part, required=True),
    "boot": Field(_uuid, required=True),
    "started_at": Field(_moment),
    "seq": Field(_whole, required=True),
    "sent_at": Field(_moment),
    "applied_version": Field(_whole),
    "config_version": Field(_whole),
    "checks": ListOf(
        {
            "switch": Field(_switch, required=True),
            "allowed": Field(_count, required=True),
            "blocked": Field(_count, required=True),
        },
        key="switch",
    ),
    "breakers": ListOf(
        {
            "dependency": Field(_text, required=True),
            "state": Field(_state, required=True),
            "mode": Field(_mode),
            "since": Field(_moment),
            "failure_rate": Field(_number),
            "slow_rate": Field(_number),
            "calls": Field(_whole),
            "counters": Counts(),
            "transitions": ListOf(_TRANSITION),
        }
    ),
    "bulkheads": ListOf(
        {
            "name": Field(_text, required=True),
            "in_flight": Field(_whole, required=True),
            "limit": Field(_whole, required=True),
            "queued": Field(_whole),
            "queue_limit": Field(_whole),
            "rejected": Field(_whole),
        }
    ),
    "sli": ListOf(
        {
            "slo": Field(_slo, required=True),
            "good": Field(_whole, required=True),
            "total": Field(_whole, required=True),
        },
        key="slo",
        together=_good_of_total,
    ),
}
