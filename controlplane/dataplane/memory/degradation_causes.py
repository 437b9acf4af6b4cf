"""Validation of degradation causes read from the database or a file. Pure."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from controlplane.core.degradation_levels import CRITICAL, DEGRADED, EMERGENCY, Cause

_NAMES = frozenset(each.name for each in fields(Cause))


def parse_cause(document: Any) -> Cause:
    """Return the cause in a JSON document; raise TypeError unless its known fields are valid."""
    if not isinstance(document, Mapping) or document.get("level") not in _LEVELS:
        raise TypeError("a cause is none")
    known = {name: document[name] for name in _NAMES & document.keys()}
    if not all(isinstance(known.get(name), str) for name in ("what", "text")):
        raise TypeError("a cause does not say what is away")
    if not isinstance(known.get("since", ""), str):
        raise TypeError("a cause's beginning is no text")
    if not all(_are_texts(known.get(name, [])) for name in ("fails", "works")):
        raise TypeError("a cause's effects are no texts")
    return Cause.from_json(known)


_LEVELS = (DEGRADED, CRITICAL, EMERGENCY)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
