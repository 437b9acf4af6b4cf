"""Subjects of alerts, as screens and messages show them. Pure."""

import re

_DEPENDENCY = re.compile("([a-z0-9-]+)->([a-z0-9-]+)", re.ASCII)


def is_dependency(subject: str) -> bool:
    return _DEPENDENCY.fullmatch(subject) is not None


def format_subject(subject: str) -> str:
    """Return `core → oracle` for a dependency's name `core->oracle`; others are unchanged."""
    found = _DEPENDENCY.fullmatch(subject)
    return f"{found[1]} → {found[2]}" if found else subject


def format_target(target: str) -> str:
    """Return an audit target such as `dependency:core->oracle` with its name formatted."""
    kind, colon, name = target.rpartition(":")
    return f"{kind}{colon}{format_subject(name)}"
