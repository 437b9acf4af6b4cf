"""Parsing of `<epoch>.<version>` in If-None-Match and Last-Event-ID. Pure.

In an ETag a suffix marks the document that drill instances get while a drill runs, and `-gzip` the
gzip form of the same document.
"""

import re
from collections.abc import Sequence

from .served_copy import Copy

Mark = tuple[bytes, bytes, bytes | None]
"""An epoch as text, a version in decimal digits, and the suffix; None matches any suffix."""

_MARK = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})"
_ENTITY_TAG = re.compile(rb'"' + _MARK + rb'(-[0-9a-f]{8}|)(?:-gzip)?"')
_EVENT_ID = re.compile(_MARK)


def parse_tags(if_none_match: bytes) -> list[Mark]:
    """Return the marks in an If-None-Match header."""
    return _ENTITY_TAG.findall(if_none_match)


def parse_event_id(last_event_id: bytes) -> list[Mark]:
    """Return the mark in a Last-Event-ID header, if any."""
    found = _EVENT_ID.fullmatch(last_event_id)
    return [] if found is None else [(found[1], found[2], None)]


def name(marks: Sequence[Mark], copy: Copy) -> bool:
    """Return True if one of `marks` is `copy`, or a newer version of its epoch.

    A newer one comes from another replica that is ahead of this one, so the caller keeps it. A copy
    restored from disk has no drills, so it doesn't end one.
    """
    present = copy.publication.version
    return any(
        epoch == copy.epoch
        and (
            int(version) > present
            or (int(version) == present and (copy.is_kept or suffix in (None, copy.suffix)))
        )
        for epoch, version, suffix in marks
    )
