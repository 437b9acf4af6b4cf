"""Version marks `<epoch>.<version>` in If-None-Match and Last-Event-ID. Pure.

In an ETag, a suffix identifies the document of drill instances, and `-gzip` the gzip form.
"""

import re
from collections.abc import Sequence

from .served_copy import Copy

Mark = tuple[bytes, bytes, bytes | None]
"""Epoch as text, version in decimal digits, and suffix; the suffix None matches any."""

_MARK = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})"
_ENTITY_TAG = re.compile(rb'"' + _MARK + rb'(-[0-9a-f]{8}|)(?:-gzip)?"')
_EVENT_ID = re.compile(_MARK)


def parse_tags(if_none_match: bytes) -> list[Mark]:
    return _ENTITY_TAG.findall(if_none_match)


def parse_event_id(last_event_id: bytes) -> list[Mark]:
    """Return the mark in a Last-Event-ID header, as a list of at most one."""
    match = _EVENT_ID.fullmatch(last_event_id)
    return [] if match is None else [(match[1], match[2], None)]


def match_copy(marks: Sequence[Mark], copy: Copy) -> bool:
    """Return True if one of `marks` names `copy`, or a newer version of its epoch.

    A newer version comes from a replica that is ahead of this one, so the client keeps it. For a
    copy restored from disk, which has no drills, any suffix matches, so that running drills go on.
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
