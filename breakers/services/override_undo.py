"""Undo of one's own override within 30 seconds, which restores the override that it replaced."""

from datetime import datetime, timedelta

from django.db import transaction

from breakers import publication
from breakers.models import Dependency, Override
from controlplane.core.actors import Actor, label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.live.change_notices import notify_changed

from . import override_endings, registry
from .permissions import SCOPE, require_set

UNDO_WINDOW = timedelta(seconds=30)
AMBIGUOUS_WINDOW = timedelta(seconds=2)
"""Two changes within this time count as simultaneous."""
OTHER_ACTIONS = ("switch.engaged", "override.set", "override.replaced")


@retry_if_ended
def undo_override(
    *, caller: str, callee: str, actor: Actor, now: datetime, if_newest: bool = False
) -> Override | None:
    """Undo one's own override within 30 seconds, if nothing changed since.

    Anyone who may set an override may undo it, because that restores what was in force before.
    Return the restored override: the one that it replaced, if that has not expired. With
    `if_newest`, the override must be the last thing that this person engaged or forced. Raise
    :class:`Conflict` with the unmet condition, or :class:`NotFound`.
    """
    actor.require(SCOPE)
    with transaction.atomic():
        head = publication.lock_with_teams()
        dependency = registry.lock_dependency(caller, callee)
        override = override_endings.lock_live_override(dependency)
        if override is None:
            raise NotFound(f"{dependency.name} has no override.")
        require_set(actor, override.mode, dependency)
        _check_undoable(override, dependency, actor, now)
        if if_newest:
            _check_newest(override, dependency, actor)
        override_endings.end_override(override, override_endings.UNDONE, actor=actor, now=now)
        version = publication.advance(head, now, dependency)
        restored = _restore_replaced(override, version, now)
        notify_changed("breakers", dependency.name)
        override_endings.record_end(override, dependency, restored=restored, actor=actor, now=now)
        return restored


def find_undo_until(override: Override, label: str, now: datetime) -> datetime | None:
    """Return the time until which the actor with this label may undo the override, or None."""
    until = override.set_at + UNDO_WINDOW
    is_untouched = override.dependency.version == override.version
    is_open = override.set_by == label and is_untouched and override.mode != Override.Mode.RESET
    return until if is_open and until > now + timedelta(seconds=1) else None


def _check_undoable(
    override: Override, dependency: Dependency, actor: Actor, now: datetime
) -> None:
    if override.set_by != actor.label:
        raise Conflict("Only the person who set this override can undo it. Remove it instead.")
    if override.mode == Override.Mode.RESET:
        raise Conflict("A reset can't be undone: the counts are gone.")
    if now - override.set_at > UNDO_WINDOW:
        raise Conflict("More than 30 seconds have passed. Remove the override instead.")
    if dependency.version != override.version:
        raise Conflict("The dependency has changed since. Remove the override instead.")


def _check_newest(override: Override, dependency: Dependency, actor: Actor) -> None:
    """Raise :class:`Conflict` if the person engaged or forced something else later or just then."""
    other = (
        AuditEntry.objects.filter(
            at__gte=override.set_at - AMBIGUOUS_WINDOW,
            action__in=OTHER_ACTIONS,
            actor_type=actor.type,
            actor_name=actor.name,
        )
        .exclude(target=dependency.resource)
        .order_by("-id")
        .first()
    )
    if other is not None:
        who = label_of(other.actor_type, other.actor_name)
        raise Conflict(
            f"{who} also changed {other.target} just now. Nothing was undone: use the Undo button"
            " on the page of the one you mean."
        )


def _restore_replaced(override: Override, version: int, now: datetime) -> Override | None:
    """Publish the override again that this one replaced, unless it has expired; return it."""
    replaced = (
        Override.objects.filter(
            dependency=override.dependency_id,
            ended_why=override_endings.REPLACED,
            ended_at=override.set_at,
            expires_at__gt=now,
        )
        .order_by("-pk")
        .first()
    )
    if replaced is not None:
        replaced.ended_at, replaced.ended_by, replaced.ended_why = None, "", ""
        replaced.version = version
        replaced.save(update_fields=["ended_at", "ended_by", "ended_why", "version"])
    return replaced
