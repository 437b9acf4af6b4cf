"""A database that has lost versions is refused until all they engaged is engaged again."""

from django.db import connection
from django.utils import timezone

from controlplane.core.actors import system_actor
from controlplane.dataplane.tests.conftest import POLL_SECONDS, Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.lossy_failover import lose_versions_after
from controlplane.dataplane.tests.test_following import engage, has, make_token
from switches import services
from switches.lost_versions.reconciliation import reconcile_lost_versions
from switches.models import LostVersion, Publication


def engaged(following: Following) -> set[str]:
    assert following.state.copy is not None
    return {key for key, it in following.state.copy.entries.items() if it.state == "engaged"}


def lose_the_engagement(following: Following, *, promoted: bool = True) -> int:
    """Engage one switch that the database keeps, and one that it loses while nobody reads it."""
    make_token()
    kept = engage("kept")
    lost = engage("lost")
    wait_until(has(following, lost), 3)
    following.database.cut()
    lose_versions_after(kept, promoted=promoted)
    return kept


def test_lost_engagement_stays_blocked_and_is_engaged_again(following: Following) -> None:
    kept = lose_the_engagement(following)
    left = Publication.objects.get().epoch
    following.database.mend()
    wait_until(lambda: LostVersion.objects.exists(), 5)
    wait_until(lambda: following.state.age_seconds() > 5 * POLL_SECONDS, 3)
    assert engaged(following) == {"segment:kept", "segment:lost"}
    assert "lost changes" in following.state.own_causes()[0].text

    assert reconcile_lost_versions(timezone.now()) == 1
    head = Publication.objects.get()
    assert head.epoch != left
    wait_until(lambda: following.state.status().epoch == head.epoch, 5)

    assert engaged(following) == {"segment:kept", "segment:lost"}
    wait_until(lambda: not following.state.is_ahead, 3)
    assert LostVersion.objects.get().version == kept + 1


def test_number_given_again_to_other_changes_is_noticed(following: Following) -> None:
    lose_the_engagement(following)
    engage("other")
    engage("another")
    following.database.mend()
    wait_until(lambda: LostVersion.objects.exists(), 5)
    assert engaged(following) == {"segment:kept", "segment:lost"}

    reconcile_lost_versions(timezone.now())
    epoch = Publication.objects.get().epoch
    wait_until(lambda: following.state.status().epoch == epoch, 5)

    names = ("kept", "lost", "other", "another")
    assert engaged(following) == {f"segment:{name}" for name in names}


def test_epoch_that_began_before_the_report_is_not_adopted_without_it(
    following: Following,
) -> None:
    lose_the_engagement(following)
    began = services.begin_epoch(
        reason="replica promoted, INC-7", actor=system_actor("test"), now=timezone.now()
    )
    following.database.mend()
    wait_until(lambda: LostVersion.objects.exists(), 5)
    assert following.state.status().epoch != began.epoch
    assert engaged(following) == {"segment:kept", "segment:lost"}

    reconcile_lost_versions(timezone.now())
    wait_until(lambda: following.state.status().epoch == began.epoch, 5)

    assert engaged(following) == {"segment:kept", "segment:lost"}


def test_server_that_was_not_promoted_begins_no_epoch_by_itself(following: Following) -> None:
    lose_the_engagement(following, promoted=False)
    following.database.mend()
    wait_until(lambda: LostVersion.objects.exists(), 5)

    assert reconcile_lost_versions(timezone.now()) == 0
    services.begin_epoch(
        reason="snapshot of 02:00 restored", actor=system_actor("test"), now=timezone.now()
    )
    assert reconcile_lost_versions(timezone.now()) == 1

    epoch = Publication.objects.get().epoch
    wait_until(lambda: following.state.status().epoch == epoch, 5)
    assert engaged(following) == {"segment:kept", "segment:lost"}


def test_version_that_the_database_has_is_not_reported(following: Following) -> None:
    wait_until(has(following, engage("one")), 3)
    following.database.cut()
    engage("two")
    began = services.begin_epoch(
        reason="to be sure, INC-7", actor=system_actor("test"), now=timezone.now()
    )
    following.database.mend()

    wait_until(lambda: following.state.status().epoch == began.epoch, 5)

    assert not LostVersion.objects.exists()


def test_lost_numbers_of_other_changes_are_reported_too(following: Following) -> None:
    version = engage("kept")
    make_token()
    wait_until(lambda: has(following, version)() and bool(following.state.tokens), 3)
    left = Publication.objects.get().epoch
    following.database.cut()
    lose_versions_after(version)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE core_credentials SET revision = revision - 1")
    following.database.mend()
    wait_until(lambda: LostVersion.objects.exists(), 5)

    reconcile_lost_versions(timezone.now())

    epoch = Publication.objects.get().epoch
    assert epoch != left
    wait_until(lambda: following.state.status().epoch == epoch, 5)
