"""Digests: one message about many episodes that end at once.

A digest goes to all destinations of the messages it replaces.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.targets import routing
from switches.models import Episode, OnExpiry
from switches.scopes import join_first

MAX_NOTIFIED_SINGLY = 3
MAX_NAMED = 10
# Time for which a digest counts as recent: with hundreds of episodes, ticks overlap.
RECENT_DIGEST = timedelta(minutes=10)
RELEASED, RAMP_STARTED, EXPIRES_SOON = "switch.released", "ramp.started", "episode.expires_soon"
WORST_FIRST = ("critical", "warning", "info")

Single = Callable[[Episode], tuple[str, str]]
"""A function that returns event and severity of the single message that a digest replaces."""


def notify_in_digest(
    event: str, due: Sequence[Episode], single: Single, now: datetime
) -> dict[int, str]:
    """Announce due episodes in one digest if more than three are in no recent digest.

    Return, by id, each due episode that is in a digest, with the event of the single message that
    the digest replaces. Call this before the episodes are processed, so that a worker's crash can't
    lose the digest.
    """
    before = _recently_notified(event, now) if due else {}
    notified = {
        episode.pk: before[_end_key(episode)] for episode in due if _end_key(episode) in before
    }
    fresh = [episode for episode in due if episode.pk not in notified]
    if len(fresh) > MAX_NOTIFIED_SINGLY:
        announce_digest(event, fresh, single, now)
        notified |= {episode.pk: single(episode)[0] for episode in fresh}
    return notified


def announce_digest(
    event: str,
    due: Sequence[Episode],
    single: Single,
    now: datetime,
    notices: Mapping[int, timedelta] = MappingProxyType({}),
) -> None:
    """Send one message about all these episodes; repeating the call sends no second one.

    Channels of teams get it about what their team owns, unless they are sent the whole. `notices`
    maps each episode due for a reminder to how long before its expiry that is: a day or an hour.
    """
    keys = sorted((_end_key(episode), str(notices.get(episode.pk, ""))) for episode in due)
    singles = {(scope_of(episode), *single(episode)) for episode in due}
    destinations = (
        destination
        for scope, single_event, severity in sorted(singles)
        for destination in routing.find_destinations(single_event, scope, severity, now)
    )
    outbox.announce_together(
        due,
        resource_of=attrgetter("switch_id"),
        facts_of=lambda part: _digest_facts(part, single),
        event=event,
        event_key=f"{event}:{sha256(repr(keys).encode()).hexdigest()[:40]}",
        severity=min((severity for _, _, severity in singles), key=WORST_FIRST.index),
        now=now,
        to=list(dict.fromkeys(destinations)),
    )


def _digest_facts(due: Sequence[Episode], single: Single) -> dict[str, Any]:
    groups: dict[str, list[Episode]] = defaultdict(list)
    for episode in due:
        groups["permanent" if episode.permanent else _classify_end(episode, single)].append(episode)
    return {
        "count": len(due),
        "switches": [episode.switch_id for episode in due],
        "ends": [_end_key(episode) for episode in due],
        "events": [single(episode)[0] for episode in due],
        **{
            name: join_first([one.switch_id for one in groups[name]], MAX_NAMED) or None
            for name in ("held", "released", "ramping", "permanent")
        },
        "path": "/attention/",
    }


def scope_of(episode: Episode) -> str:
    return episode.switch_id.partition(":")[0]


def thread_destinations(episode: Episode) -> list[str]:
    """Return the destinations that already have a message thread about the episode."""
    found = Thread.objects.filter(subject=f"episode:{episode.pk}")
    return list(found.values_list("destination", flat=True))


def _end_key(episode: Episode) -> str:
    return f"{episode.pk}@{timestamp(episode.ends_at) if episode.ends_at else ''}"


def _classify_end(episode: Episode, single: Single) -> str:
    """Return the state in which the expiry leaves the episode: `held`, `released` or `ramping`."""
    event = single(episode)[0]
    by_policy = {OnExpiry.RELEASE.value: "released", OnExpiry.RAMP.value: "ramping"}
    if event == EXPIRES_SOON:
        return by_policy.get(episode.on_expiry, "held")
    return {RELEASED: "released", RAMP_STARTED: "ramping"}.get(event, "held")


def _recently_notified(event: str, now: datetime) -> dict[str, str]:
    digests = OutboxMessage.objects.filter(event=event, created_at__gt=now - RECENT_DIGEST)
    return {
        end: single
        for facts in digests.values_list("payload", flat=True)
        for end, single in zip(facts["ends"], facts["events"], strict=True)
    }
