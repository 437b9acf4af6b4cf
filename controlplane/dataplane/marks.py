"""Reading `<epoch>.<version>` as clients send it back, in If-None-Match and Last-Event-ID. Pure."""

import re
from collections.abc import Iterable
from uuid import UUID

from switches.snapshot import Publication

_MARK = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})"
_ENTITY_TAG = re.compile(rb'"' + _MARK + rb'"')
_EVENT_ID = re.compile(_MARK)


def has_by_tag(publication: Publication, if_none_match: bytes) -> bool:
    """True if one of the tags in If-None-Match names this publication, or a newer one of its epoch.

    A newer one comes from another replica that is ahead of this one: nobody is sent back.
    """
    return _has(publication, _ENTITY_TAG.findall(if_none_match))


def has_by_event(publication: Publication, last_event_id: bytes) -> bool:
    """The same of a Last-Event-ID."""
    found = _EVENT_ID.fullmatch(last_event_id)
    return found is not None and _has(publication, [found.groups()])


def _has(publication: Publication, marks: Iterable[tuple[bytes, ...]]) -> bool:
    return any(
        UUID(epoch.decode()) == publication.epoch and int(version) >= publication.version
        for epoch, version in marks
    )
