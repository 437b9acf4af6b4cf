"""Lost changes that wait for a person, and the decision to keep a switch engaged."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.live.change_notices import notify_changed
from switches import publication
from switches.models import LostChange


def find_undecided() -> QuerySet[LostChange]:
    """Return lost changes whose switch is still engaged and that nobody has decided on.

    Releasing the switch, or starting its ramp, decides, too.
    """
    return LostChange.objects.filter(kept_at=None, episode__ended_at=None, episode__allow_percent=0)


def keep_engaged(ids: Collection[int], *, actor: Actor, now: datetime) -> int:
    """Record that these switches stay engaged on purpose; return the number of switches.

    Changes that somebody else decided on meanwhile are left out.
    """
    actor.require("switches:write")
    with transaction.atomic():
        publication.lock()
        found = find_undecided().filter(pk__in=ids).select_related("episode", "lost_version")
        changes = list(found.order_by("pk"))
        for switch_id in {change.episode.switch_id for change in changes}:
            authority.require(actor, Action.EXTEND, switch_id)
        for change in changes:
            change.kept_at, change.kept_by = now, actor.label
            change.save(update_fields=["kept_at", "kept_by"])
        for change in changes:
            audit.record(
                actor=actor,
                action="lost_change.kept",
                target=change.episode.switch_id,
                reason=change.episode.reason,
                before={"lost_version": change.lost_version.version, "state": change.description},
                after={"episode": change.episode_id, "state": "engaged"},
                now=now,
            )
            notify_changed("switches", change.episode.switch_id)
    return len(changes)
