"""Reconciliation of lost versions: a new epoch in which all that they engaged is engaged again.

Data planes refuse a database that lacks the version they serve, and report that version. The tick
`switches.lost_versions` closes each report in one transaction, which begins the new epoch, so the
first version that data planes adopt releases nothing. A version is only ever engaged from, never
released: a person decides about every difference.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from controlplane.core.actors import system_actor
from controlplane.core.canonical import timestamp
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.escalations import services as escalation
from controlplane.core.outbox import services as outbox
from controlplane.core.sql import fetch_all
from switches import publication, reminders
from switches.episodes import batches, changes, live_drills
from switches.expiry import MIN_DURATION, UNTIL_APPROVED, Expiry
from switches.models import (
    Episode,
    LostChange,
    LostVersion,
    OnExpiry,
    Publication,
    PublishedVersion,
    Switch,
    SwitchState,
)
from switches.rules import break_glass, guard
from switches.services.engage import open_episode
from switches.services.epoch import begin_epoch
from switches.services.reengage import reengage
from switches.services.registration import register_and_lock
from switches.snapshot import SnapshotEntry

SYSTEM = system_actor("failover")
CHANGES_LOST = "publication.changes_lost"
MAX_AT_ONCE = 20
PAGE = "/lost-changes/"

# The last version that both histories have is at most as new as the lost one. If it was published
# on an earlier timeline, this server was promoted since. Otherwise it may be an old primary that
# was replaced, and must not begin an epoch by itself.
_WAS_PROMOTED = """
    SELECT timeline < switches_timeline() FROM switches_publishedversion
    WHERE epoch = %s AND version <= %s AND published_at <= %s
    ORDER BY version DESC, published_at DESC LIMIT 1
"""


def reconcile_lost_versions(now: datetime) -> int:
    """Close the reports of lost versions that can be; return their number.

    The newest goes first, because an older one may still engage what people released later.
    """
    due = find_open().order_by("-version", "pk")
    return batches.process_each(
        list(due.values_list("pk", flat=True)[:MAX_AT_ONCE]),
        lambda pk: _reconcile(pk, now),
        "some lost versions could not be reconciled",
    )


def find_open() -> QuerySet[LostVersion]:
    return LostVersion.objects.filter(closed_at=None)


@retry_if_ended
@transaction.atomic
def _reconcile(pk: int, now: datetime) -> bool:
    head = publication.lock()
    lost = find_open().select_for_update().filter(pk=pk).first()
    if lost is None:
        return False
    if head.epoch == lost.epoch:
        if not was_promoted(lost):
            return False
        reason = f"PostgreSQL was promoted without version {lost.version}, which {lost.plane} has."
        head = begin_epoch(reason=reason, actor=SYSTEM, now=now)
    found: list[LostChange] = []
    if not _has_version(lost) and not _has_newer_report(lost):
        found = _restore(head, lost, now)
    lost.closed_at, lost.closed_version = now, head.version
    lost.save(update_fields=["closed_at", "closed_version"])
    if found:
        _announce(lost, found, now)
    return True


def was_promoted(lost: LostVersion) -> bool:
    """Return True if it is certain that this server was promoted, and lost the version by that."""
    values = [lost.epoch, lost.version, lost.published_at]
    return fetch_all(_WAS_PROMOTED, values) == [(True,)]


def _has_version(lost: LostVersion) -> bool:
    """Return True if only other changes were lost, such as the creation of a token."""
    return PublishedVersion.objects.filter(
        epoch=lost.epoch, version=lost.version, published_at=lost.published_at
    ).exists()


def _has_newer_report(lost: LostVersion) -> bool:
    newer = LostVersion.objects.filter(
        epoch=lost.epoch, version__gt=lost.version, published_at__gte=lost.published_at
    )
    return newer.filter(closed_at__isnull=False).exists()


def _restore(head: Publication, lost: LostVersion, now: datetime) -> list[LostChange]:
    """Engage again what the lost version engages, and return all differences from it."""
    entries = {element["id"]: _read_entry(element) for element in lost.entries}
    found = [
        change
        for switch_id in sorted(entries)
        if (change := _restore_switch(head, lost, entries[switch_id], now)) is not None
    ]
    return [*found, *_find_lost_releases(lost, entries.keys())]


def _read_entry(element: Mapping[str, Any]) -> SnapshotEntry:
    until = element["expires_at"]
    return SnapshotEntry(
        id=element["id"],
        scope=element["scope"],
        key=element["key"],
        allow_percent=Decimal(str(element["allow_percent"])),
        salt=element["salt"],
        reason=element["reason"],
        engaged_at=datetime.fromisoformat(element["engaged_at"]),
        expires_at=None if until is None else datetime.fromisoformat(until),
        on_expiry=element["on_expiry"],
    )


def _restore_switch(
    head: Publication, lost: LostVersion, entry: SnapshotEntry, now: datetime
) -> LostChange | None:
    switch = register_and_lock(entry.scope, entry.key, now=now)
    present = changes.lock_open_episode(switch)
    if present is not None and entry.state == SwitchState.RAMPING:
        # A ramp that has begun goes on by its own gates, from an earlier step.
        is_engaged = present.state == SwitchState.ENGAGED
        return _record(lost, present, "was ramping", was_engaged=False) if is_engaged else None
    if present is not None and present.state == SwitchState.ENGAGED:
        return _extend(head, lost, switch, present, entry, now)
    if present is None and _has_ended(switch, entry, now):
        return None
    episode = _engage(head, lost, switch, present, entry, now)
    return _record(lost, episode, f"was {entry.state}", was_engaged=True)


def _has_ended(switch: Switch, entry: SnapshotEntry, now: datetime) -> bool:
    """Return True if the engagement ended by its expiry, or in this database."""
    if entry.on_expiry == OnExpiry.RELEASE and (entry.expires_at or now) < now:
        return True
    ended = Episode.objects.filter(switch=switch, ended_at__isnull=False)
    return ended.filter(engaged_at=entry.engaged_at).exists()


def _engage(
    head: Publication,
    lost: LostVersion,
    switch: Switch,
    present: Episode | None,
    entry: SnapshotEntry,
    now: datetime,
) -> Episode:
    since = min(entry.engaged_at, now)
    expiry = Expiry(
        expires_at=entry.expires_at or now + UNTIL_APPROVED,
        permanent_requested=False,
        on_expiry=OnExpiry.HOLD,
    )
    facts = _facts(lost)
    live_drills.supersede(switch, f"{SYSTEM.label} engaged the switch.", now)
    if present is not None:
        # A clock may have been set back.
        expiry = replace(
            expiry, expires_at=max(expiry.expires_at, present.engaged_at + MIN_DURATION)
        )
        return reengage(
            *(head, switch, present, entry.reason, expiry, facts, SYSTEM, now),
            keeps_expiry=True,
            more=facts,
        ).episode
    rules = [refusal.rule for refusal in guard.refusals_to_engage(switch.pk)]
    why = f"{entry.reason} (Engaged in version {lost.version}, which PostgreSQL has lost.)"
    override = break_glass.override_record(why, rules, "engage", SYSTEM) if rules else None
    return open_episode(
        *(head, switch, entry.reason, expiry, facts, SYSTEM, now, override),
        engaged_at=min(since, expiry.expires_at - MIN_DURATION),
        more=facts,
    ).episode


def _extend(
    head: Publication,
    lost: LostVersion,
    switch: Switch,
    episode: Episode,
    entry: SnapshotEntry,
    now: datetime,
) -> LostChange | None:
    """Let an engaged switch last as long as in the lost version, and hold at its expiry."""
    if episode.expires_at is None:
        return None
    until = entry.expires_at or max(episode.expires_at, now + UNTIL_APPROVED)
    is_longer = until > episode.expires_at
    holds = entry.on_expiry == OnExpiry.HOLD != episode.on_expiry
    if not is_longer and not holds:
        return None
    before = changes.audit_state(switch, episode)
    fields: dict[str, Any] = {"on_expiry": OnExpiry.HOLD.value}
    if is_longer:
        fields |= {
            "expires_at": until,
            "overdue_at": None,
            **changes.NOT_ACKNOWLEDGED,
            **reminders.skipped_reminders(until, now),
        }
    changes.update_episode(episode, fields)
    publication.publish(head, switch, now)
    if is_longer:
        escalation.close(subject=changes.episode_subject(episode), now=now)
    changes.record_change(
        *("switch.extended", switch, episode, SYSTEM, now),
        before=before,
        reason=entry.reason,
        more=_facts(lost),
    )
    return _record(lost, episode, "was engaged for longer", was_engaged=True)


def _find_lost_releases(lost: LostVersion, listed: Collection[str]) -> list[LostChange]:
    """Return the switches that are engaged here, and were released in the lost version.

    Episodes that began after the lost version are people's new ones, except those that an older
    lost version made.
    """
    restored = LostChange.objects.filter(kept_at=None, lost_version__epoch=lost.epoch)
    is_older = {"engaged_version__lte": lost.version, "engaged_at__lte": lost.published_at}
    opened = Episode.objects.filter(ended_at=None, allow_percent=0).exclude(switch__in=listed)
    episodes = opened.filter(**is_older) | opened.filter(pk__in=restored.values("episode"))
    return [
        _record(lost, episode, "was released", was_engaged=False)
        for episode in episodes.order_by("switch_id")
    ]


def _record(
    lost: LostVersion, episode: Episode, description: str, *, was_engaged: bool
) -> LostChange:
    """Store a difference for a person to decide, instead of an older one about the episode."""
    change, _ = LostChange.objects.update_or_create(
        episode=episode,
        kept_at=None,
        defaults={
            "lost_version": lost,
            "was_engaged": was_engaged,
            "description": description,
        },
    )
    return change


def _announce(lost: LostVersion, found: Sequence[LostChange], now: datetime) -> None:
    def facts_of(part: Sequence[LostChange]) -> dict[str, Any]:
        count = len(part)
        return {
            "changes": "1 change" if count == 1 else f"{count} changes",
            "switches": ", ".join(change.episode.switch_id for change in part[:20]),
            "plane": lost.plane,
            "version": lost.version,
            "path": PAGE,
            **_facts(lost),
        }

    outbox.announce_together(
        found,
        resource_of=lambda change: change.episode.switch_id,
        facts_of=facts_of,
        event=CHANGES_LOST,
        event_key=f"{CHANGES_LOST}:{lost.pk}",
        subject=f"lost-version:{lost.pk}",
        now=now,
    )


def _facts(lost: LostVersion) -> dict[str, Any]:
    return {
        "lost_version": {
            "epoch": str(lost.epoch),
            "version": lost.version,
            "published_at": timestamp(lost.published_at),
            "plane": lost.plane,
        }
    }
