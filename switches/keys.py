"""What a key may look like, for services, requests, the decision and the table alike. Pure."""

import re

PATTERN = r"[A-Za-z0-9._-]{1,120}"
KEY = re.compile(PATTERN)
_SCOPED = re.compile(
    r"\s*(global|segment|feature|experiment)\s*:\s*(.*)", re.IGNORECASE | re.DOTALL
)


def split(typed: str) -> tuple[str, str] | None:
    """`feature:nl2sql`, typed where only a key belongs → its scope and its key; else None."""
    found = _SCOPED.fullmatch(typed)
    return (found[1].lower(), found[2].strip()) if found else None
