"""Dependencies known only from reports: rediscovery after a removal, and purging."""

from datetime import datetime, timedelta

from django.db import transaction

from breakers import publication
from breakers.models import Dependency
from breakers.policies.parameters import COLUMNS
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.core.instances.exports import PRESENT_BOOT
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.sql import fetch_all

ACTOR = system_actor("reports")
MAX_AT_ONCE = 500
AFTER_REMOVAL = timedelta(minutes=1)
"""Time in which instances may still report a removed dependency."""
PURGE_UNSEEN_AFTER = timedelta(hours=1)
PURGE_SILENT_AFTER = timedelta(days=1)

_COME_BACK = f"""
    SELECT d.id FROM breakers_dependency d
    WHERE d.removed_at IS NOT NULL AND EXISTS (
        SELECT FROM breakers_breakerstate s
        JOIN {PRESENT_BOOT}
        WHERE s.dependency_id = d.id AND i.reported_at >= %(fresh)s
          AND i.reported_at >= d.removed_at + make_interval(secs => %(after)s)
    )
    ORDER BY d.id LIMIT %(most)s
"""  # noqa: S608
# Dependencies that were published (version > 0) stay, so that services learn of their removal. Rows
# locked by a report are skipped until the next run.
_UNSEEN = f"""
    SELECT d.id FROM breakers_dependency d
    WHERE d.document = '{{}}' AND d.version = 0 AND d.removed_at IS NULL
      AND d.registered_at < %(unseen)s
      AND NOT EXISTS (SELECT FROM breakers_override o WHERE o.dependency_id = d.id)
      AND NOT EXISTS (
          SELECT FROM breakers_breakerstate s
          JOIN {PRESENT_BOOT}
          WHERE s.dependency_id = d.id AND i.reported_at >= %(silent)s
      )
    ORDER BY d.id LIMIT %(most)s FOR UPDATE OF d SKIP LOCKED
"""  # noqa: S608


def rediscover_dependencies(now: datetime) -> int:
    """Restore removed dependencies that are still reported, without policy; return how many."""
    if not _reported_again(now):
        return 0
    with transaction.atomic():
        registry = publication.lock()
        locked = Dependency.objects.select_for_update(no_key=True)
        rows = list(locked.filter(pk__in=_reported_again(now)).order_by("pk"))
        if not rows:  # They were registered meanwhile.
            return 0
        as_reported = {column: getattr(Dependency(), column) for column in COLUMNS}
        for row in rows:
            vars(row).update(as_reported, document={}, on_outage={}, removed_at=None)
            row.registered_at = row.changed_at = now
        Dependency.objects.bulk_update(
            rows, [*COLUMNS, "document", "on_outage", "registered_at", "changed_at", "removed_at"]
        )
        publication.advance(registry, now, *rows)
        notify_changed("breakers", *(row.name for row in rows))
        targets = [f"dependency:{row.name}" for row in rows]
        what = {"actor": ACTOR, "action": "dependency.rediscovered", "now": now}
        audit.record_many([{**what, "target": target} for target in targets])
        return len(rows)


def purge_discovered(now: datetime) -> int:
    """Delete dependencies without policy or override that no instance reports; return how many."""
    values = {
        "unseen": now - PURGE_UNSEEN_AFTER,
        "silent": now - PURGE_SILENT_AFTER,
        "most": MAX_AT_ONCE,
    }
    done, purged = 0, MAX_AT_ONCE
    while purged == MAX_AT_ONCE:
        with transaction.atomic():
            gone = Dependency.objects.filter(pk__in=[pk for (pk,) in fetch_all(_UNSEEN, values)])
            named = [row.name for row in gone]
            gone.delete()
            if named:
                notify_changed("breakers", *named)
        purged = len(named)
        done += purged
    return done


def _reported_again(now: datetime) -> list[int]:
    values = {
        "fresh": now - INSTANCE_CADENCE,
        "after": AFTER_REMOVAL.total_seconds(),
        "most": MAX_AT_ONCE,
    }
    return [pk for (pk,) in fetch_all(_COME_BACK, values)]
