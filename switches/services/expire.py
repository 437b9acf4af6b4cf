"""What happens when an episode's time is up: it is released, or held and overdue."""

from datetime import datetime

from django.db import InterfaceError, OperationalError, transaction

from controlplane.core.actors import system
from switches import facts, publication
from switches.models import Episode, OnExpiry, Switch
from switches.services import changes

MOST_AT_ONCE = 500


def expire_due(now: datetime) -> int:
    """Deal with every episode past its expiry, each in its own transaction; returns how many.

    Safe to run twice at once: each episode is looked at again under the lock.
    """
    due = Episode.objects.filter(
        ended_at__isnull=True, overdue_at__isnull=True, expires_at__lte=now
    ).order_by("expires_at")
    done, failures = 0, []
    for pk in due.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        try:
            done += _expire(pk, now)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            failures.append(error)  # Raised below: one that fails must not keep the rest engaged.
    if failures:
        raise ExceptionGroup("some episodes could not expire", failures)
    return done


@transaction.atomic
def _expire(episode_id: int, now: datetime) -> bool:
    head = publication.lock()
    switch_id = Episode.objects.values_list("switch_id", flat=True).get(pk=episode_id)
    switch = Switch.objects.select_for_update().get(pk=switch_id)
    episode = changes.open_episode(switch)
    if episode is None or episode.pk != episode_id or episode.overdue_at is not None:
        return False
    if episode.expires_at is None or episode.expires_at > now:
        return False
    actor = system("expiry")
    if episode.on_expiry == OnExpiry.RELEASE:
        changes.close(
            head,
            switch,
            episode,
            how=Episode.End.EXPIRED,
            action="switch.released",
            reason="Its time was up and its policy is to release.",
            actor=actor,
            now=now,
        )
        return True
    # Ramps do not exist yet: an episode that asks for one is held like the rest, and overdue.
    before = facts.picture(switch, episode)
    episode.overdue_at = now
    episode.save(update_fields=["overdue_at"])
    changes.tell(
        "episode.overdue",
        switch,
        episode,
        actor,
        now,
        before=before,
        reason="Its time is up and it is held: extend it or release it.",
    )
    return True
