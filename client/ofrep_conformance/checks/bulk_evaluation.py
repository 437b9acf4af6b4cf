"""Checks of `POST /ofrep/v1/evaluate/flags`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import Session
from ofrep_conformance.shapes import (
    find_item_problems,
    find_json_problems,
    find_metadata_problems,
    find_status_problems,
)

SOURCE = "openapi.yaml, POST /ofrep/v1/evaluate/flags"
MAX_COMPARED = 20
"""Most flags that are evaluated one by one, too."""


def list_flags(session: Session) -> list[Any]:
    flags = session.evaluate_all().as_object().get("flags")
    return flags if isinstance(flags, list) else []


@add_check("bulk.status", Level.MUST, "A bulk evaluation gives 200.", SOURCE)
def check_status(session: Session) -> Iterator[str]:
    yield from find_status_problems(session.evaluate_all(), 200)


@add_check("bulk.json", Level.MUST, "It is an application/json object with a list flags.", SOURCE)
def check_json(session: Session) -> Iterator[str]:
    response = session.evaluate_all()
    yield from find_json_problems(response)
    if not isinstance(response.as_object().get("flags"), list):
        yield "flags is not a list"


@add_check(
    "bulk.entries", Level.MUST, "Each entry has a key, and is an evaluation or a failure.", SOURCE
)
def check_entries(session: Session) -> Iterator[str]:
    for item in list_flags(session):
        yield from find_item_problems(item)


@add_check("bulk.known-flags", Level.MUST, "The known flags are listed with their values.", SOURCE)
def check_known_flags(session: Session) -> Iterator[str]:
    flags = [flag for flag in session.manifest.flags if flag.in_bulk]
    if not flags:
        raise Skip("the manifest names no flag that bulk evaluations have")
    listed = {item["key"]: item for item in list_flags(session) if _has_key(item)}
    for flag in flags:
        if flag.key not in listed:
            yield f"{flag.key} is not listed"
            continue
        value = listed[flag.key].get("value")
        if value != flag.value or isinstance(value, bool) != isinstance(flag.value, bool):
            yield f"{flag.key}: value is {value!r} instead of {flag.value!r}"


@add_check("bulk.unique-keys", Level.MUST, "No key is listed twice.", SOURCE)
def check_unique_keys(session: Session) -> Iterator[str]:
    counts = Counter(item["key"] for item in list_flags(session) if _has_key(item))
    yield from (f"{key} is listed {count} times" for key, count in counts.items() if count > 1)


@add_check(
    "bulk.same-as-single",
    Level.MUST,
    "Single evaluations with the same context give the same values and variants.",
    SOURCE,
)
def check_same_as_single(session: Session) -> Iterator[str]:
    listed = [item for item in list_flags(session) if _has_key(item) and "errorCode" not in item]
    if not listed:
        raise Skip("no flag is listed")
    for item in listed[:MAX_COMPARED]:
        single = session.evaluate(item["key"]).as_object()
        for name in ("value", "variant"):
            if single.get(name) != item.get(name):
                yield f"{item['key']}: {name} {item.get(name)!r}, alone {single.get(name)!r}"


@add_check(
    "bulk.metadata",
    Level.MUST,
    "Metadata of the response, if any, is an object of booleans, strings and numbers.",
    SOURCE,
)
def check_metadata(session: Session) -> Iterator[str]:
    yield from find_metadata_problems(session.evaluate_all().as_object())


def _has_key(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("key"), str)
