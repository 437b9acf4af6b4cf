"""Reading `<epoch>.<version>` as clients send it back, in If-None-Match and Last-Event-ID. Pure.

In an ETag a suffix marks the document that drill instances get while a drill runs, and `-gzip` the
gzip form of the same document.
"""

import re
from collections.abc import Sequence

from .served_copy import Copy

Mark = tuple[bytes, bytes, bytes | None]
"""An epoch as it is written, a version in decimal digits, and the suffix; None if it may be any."""

_MARK = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})"
_ENTITY_TAG = re.compile(rb'"' + _MARK + rb'(-[0-9a-f]{8}|)(?:-gzip)?"')
_EVENT_ID = re.compile(_MARK)


def in_tags(if_none_match: bytes) -> list[Mark]:
    """What the tags of an If-None-Match name."""
    return _ENTITY_TAG.findall(if_none_match)


def in_event_id(last_event_id: bytes) -> list[Mark]:
    """What a Last-Event-ID names."""
    found = _EVENT_ID.fullmatch(last_event_id)
    return [] if found is None else [(found[1], found[2], None)]


def name(marks: Sequence[Mark], copy: Copy) -> bool:
    """True if one of `marks` is `copy`, or a newer one of its epoch.

    A newer one comes from another replica that is ahead of this one: nobody is sent back. Nor does
    a copy from the disk end a drill, which it does not know of.
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
