"""The publication row: the lock every published change takes first, and the version it gives."""

from datetime import datetime

from controlplane.core.clock import db_now
from controlplane.core.live.notes import changed
from controlplane.core.wake import wake
from switches.models import Publication, Switch


def lock() -> Publication:
    """Lock the one row until commit. Everybody who changes a switch waits here, and only here."""
    return Publication.objects.select_for_update().get(pk=1)


def advance(publication: Publication, now: datetime) -> int:
    """Number a change of what is served. Because the row stays locked until commit, versions are
    commit order. Of a switch itself nothing changes, as with a drill."""
    publication.version += 1
    publication.published_at = max(publication.published_at, now)
    publication.save(update_fields=["version", "published_at"])
    wake("snapshot")
    return publication.version


def publish(publication: Publication, switch: Switch, now: datetime) -> int:
    """Number a change of a switch; returns the version."""
    advance(publication, now)
    switch.version = publication.version
    switch.requested_at = now
    # Not the transaction's `now`: whoever waited for the lock was asked long before this moment.
    switch.committed_at = db_now()
    switch.save(update_fields=["version", "requested_at", "committed_at"])
    changed("switches", switch.pk)
    return publication.version
