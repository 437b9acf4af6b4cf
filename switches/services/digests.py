"""When many episodes come due in one turn: one message that lists them, instead of one for each.

It goes wherever the routes would lead the messages that it stands for.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from types import MappingProxyType

from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.core.targets import routing
from switches.models import Episode, OnExpiry

MAX_NOTIFIED_SINGLY = 3
MAX_NAMED = 10
# A turn with hundreds takes longer than until the next one begins, and that one finds the rest.
TURNS_OVERLAP = timedelta(minutes=10)
RELEASED, RAMPS, SOON = "switch.released", "ramp.started", "episode.expires_soon"
WORST_FIRST = ("critical", "warning", "info")

Single = Callable[[Episode], tuple[str, str]]
"""The event and the severity of the message that the digest stands for."""


def told_together(
    event: str, due: Sequence[Episode], single: Single, now: datetime
) -> dict[int, str]:
    """Announce the digest `event` if more than a few are due; returns the episodes that it covers,
    each with the event that it told of.

    Written before they are dealt with, so a turn that dies has told too early rather than never.
    What a digest of a moment ago has named, is not told again, however few are left.
    """
    before = _told_lately(event, now) if due else {}
    told = {episode.pk: before[_end(episode)] for episode in due if _end(episode) in before}
    fresh = [episode for episode in due if episode.pk not in told]
    if len(fresh) > MAX_NOTIFIED_SINGLY:
        announce(event, fresh, single, now)
        told |= {episode.pk: single(episode)[0] for episode in fresh}
    return told


def announce(
    event: str,
    due: Sequence[Episode],
    single: Single,
    now: datetime,
    notices: Mapping[int, timedelta] = MappingProxyType({}),
) -> None:
    """One message about all of them; the same episodes at the same ends are told of once.

    With `notices` (by episode), once for each of those: a day before the end, and an hour before.
    """
    permanent = [episode for episode in due if episode.permanent]
    expiring = [episode for episode in due if not episode.permanent]
    become: dict[str, list[Episode]] = {}
    for episode in expiring:
        become.setdefault(_becomes(episode, single), []).append(episode)
    ends = [_end(episode) for episode in due]
    told = sorted((_end(episode), str(notices.get(episode.pk, ""))) for episode in due)
    singles = {(scope_of(episode), *single(episode)) for episode in due}
    outbox.announce(
        event=event,
        event_key=f"{event}:{sha256(repr(told).encode()).hexdigest()[:40]}",
        severity=min((severity for _, _, severity in singles), key=WORST_FIRST.index),
        facts={
            "count": len(due),
            "switches": [episode.switch_id for episode in due],
            "ends": ends,
            "events": [single(episode)[0] for episode in due],
            **{what: _named(become.get(what, [])) for what in ("held", "released", "ramping")},
            "permanent": _named(permanent),
            "path": "/attention/",
        },
        now=now,
        to=_destinations(singles, now),
    )


def scope_of(episode: Episode) -> str:
    return episode.switch_id.partition(":")[0]


def threads(episode: Episode) -> list[str]:
    """Where the episode has a thread already: another line there, as an `info`, disturbs nobody."""
    found = Thread.objects.filter(subject=f"episode:{episode.pk}")
    return list(found.values_list("destination", flat=True))


def _destinations(singles: set[tuple[str, str, str]], now: datetime) -> list[str]:
    found = (
        destination
        for scope, event, severity in sorted(singles)
        for destination in routing.routed(event, scope, severity, now)
    )
    return list(dict.fromkeys(found))


def _named(episodes: Sequence[Episode]) -> str | None:
    """`segment:a, segment:b and 12 more`; None for none."""
    if not episodes:
        return None
    shown = ", ".join(episode.switch_id for episode in episodes[:MAX_NAMED])
    more = len(episodes) - MAX_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _end(episode: Episode) -> str:
    """The episode and the moment it is told about: its expiry, or when it is to be re-confirmed."""
    ends_at = episode.expires_at or episode.reconfirm_due_at
    return f"{episode.pk}@{timestamp(ends_at) if ends_at else ''}"


def _becomes(episode: Episode, single: Single) -> str:
    """`held`, `released` or `ramping` at its end: as the message says, or by its policy before."""
    event = single(episode)[0]
    by_policy = {OnExpiry.RELEASE.value: "released", OnExpiry.RAMP.value: "ramping"}
    if event == SOON:
        return by_policy.get(episode.on_expiry, "held")
    return {RELEASED: "released", RAMPS: "ramping"}.get(event, "held")


def _told_lately(event: str, now: datetime) -> dict[str, str]:
    """The ends that digests of a moment ago have named, with the events that those stood for."""
    digests = OutboxMessage.objects.filter(event=event, created_at__gt=now - TURNS_OVERLAP)
    return {
        end: single
        for facts in digests.values_list("payload", flat=True)
        for end, single in zip(facts["ends"], facts["events"], strict=True)
    }
