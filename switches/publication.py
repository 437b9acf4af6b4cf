"""The :class:`Publication` row, which every published change locks to take its version number."""

from datetime import datetime

from controlplane.core import authority
from controlplane.core.clock import db_now
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.wakeups import wake
from switches.models import Publication, Switch


def lock() -> Publication:
    """Lock and return the :class:`Publication` row; no other change is published until commit."""
    return Publication.objects.select_for_update().get(pk=1)


def lock_with_teams() -> Publication:
    """Lock the teams against changes, and then the row; for what belongs to a switch's owner."""
    authority.lock_teams()
    return lock()


def advance(publication: Publication, now: datetime) -> int:
    """Increment, save and return the snapshot's version; no switch's row is changed."""
    publication.version += 1
    publication.published_at = max(publication.published_at, now)
    publication.save(update_fields=["version", "published_at"])
    wake("snapshot")
    return publication.version


def publish(publication: Publication, switch: Switch, now: datetime) -> None:
    """Publish a switch's change under the next snapshot version."""
    switch.version = advance(publication, now)
    switch.requested_at = now
    # Not the transaction's `now`, which is long past if it waited for the lock.
    switch.committed_at = db_now()
    switch.save(update_fields=["version", "requested_at", "committed_at"])
    notify_changed("switches", switch.pk)
