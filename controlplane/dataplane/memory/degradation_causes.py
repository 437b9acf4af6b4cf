"""Validation of degradation causes read from the database or the disk. Pure."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from controlplane.core.degradation_levels import CRITICAL, DEGRADED, EMERGENCY, Cause

_NAMES = frozenset(each.name for each in fields(Cause))


def cause(document: Any) -> Cause:
    """Return the cause in `document`, ignoring unknown fields; raise TypeError if it is invalid."""
    if not isinstance(document, Mapping) or document.get("level") not in _LEVELS:
        raise TypeError("a cause is none")
    given = {name: document[name] for name in _NAMES & document.keys()}
    if not all(isinstance(given.get(name), str) for name in ("what", "text")):
        raise TypeError("a cause does not say what is away")
    if not isinstance(given.get("since", ""), str):
        raise TypeError("a cause's beginning is no text")
    if not all(_are_texts(given.get(name, [])) for name in ("fails", "works")):
        raise TypeError("a cause's effects are no texts")
    return Cause.of(given)


_LEVELS = (DEGRADED, CRITICAL, EMERGENCY)


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)
