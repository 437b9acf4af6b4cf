"""Validation of degradation causes read from the database or a file. Pure."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from controlplane.core.degradation_levels import CRITICAL, DEGRADED, EMERGENCY, Cause

_NAMES = frozenset(each.name for each in fields(Cause))
_LEVELS = (DEGRADED, CRITICAL, EMERGENCY)


def parse_cause(document: Any) -> Cause:
    """Return the cause in a JSON document; raise TypeError if one of its fields is invalid.

    Unknown fields are ignored.
    """
    if not isinstance(document, Mapping) or document.get("level") not in _LEVELS:
        raise TypeError("a cause is none")
    known = {name: document[name] for name in _NAMES & document.keys()}
    if not all(isinstance(known.get(name), str) for name in ("what", "text")):
        raise TypeError("a cause does not say what is away")
    if not isinstance(known.get("since", ""), str):
        raise TypeError("a cause's beginning is no text")
    effects = (known.get("fails", []), known.get("works", []))
    if not all(isinstance(of, list) and all(isinstance(one, str) for one in of) for of in effects):
        raise TypeError("a cause's effects are no texts")
    return Cause.from_json(known)
