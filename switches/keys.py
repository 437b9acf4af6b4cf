"""What a key may look like, for services, requests, the decision and the table alike. Pure."""

import re

PATTERN = r"[A-Za-z0-9._-]{1,120}"
KEY = re.compile(PATTERN)
_SCOPES = frozenset({"global", "segment", "feature", "experiment"})


def split(typed: str) -> tuple[str, str] | None:
    """`feature:nl2sql`, typed where only a key belongs → its scope and its key; else None."""
    scope, colon, key = typed.partition(":")
    scope = scope.strip().lower()
    return (scope, key.strip()) if colon and scope in _SCOPES else None
