"""Reading `<epoch>.<version>` as clients send it back, in If-None-Match and Last-Event-ID. Pure."""

import re
from collections.abc import Sequence

from controlplane.dataplane.served_copy import Copy

Mark = tuple[bytes, bytes]
"""An epoch as it is written, and a version in decimal digits."""

_MARK = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})"
_ENTITY_TAG = re.compile(rb'"' + _MARK + rb'"')
_EVENT_ID = re.compile(_MARK)


def in_tags(if_none_match: bytes) -> list[Mark]:
    """What the tags of an If-None-Match name."""
    return _ENTITY_TAG.findall(if_none_match)


def in_event_id(last_event_id: bytes) -> list[Mark]:
    """What a Last-Event-ID names."""
    found = _EVENT_ID.fullmatch(last_event_id)
    return [] if found is None else [(found[1], found[2])]


def name(marks: Sequence[Mark], copy: Copy) -> bool:
    """True if one of `marks` is `copy`, or a newer one of its epoch.

    A newer one comes from another replica that is ahead of this one: nobody is sent back.
    """
    return any(
        epoch == copy.epoch and int(version) >= copy.publication.version for epoch, version in marks
    )
