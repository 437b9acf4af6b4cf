"""A restored database is refused, and accepted as a whole once it has a new epoch."""

from django.db import connection, transaction
from django.utils import timezone

from controlplane.accounts.models.tokens import Token
from controlplane.core.actors import system_actor
from controlplane.dataplane.tests.conftest import POLL_SECONDS, Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_following import engage, get_tokens, has, make_token
from switches import services
from switches.models import Episode, Publication, Switch

NUMBERS = """
    SELECT p.version, p.registrations, c.revision FROM switches_publication p, core_credentials c
"""
RESTORED = """
    UPDATE switches_publication SET version = %s, registrations = %s;
    UPDATE core_credentials SET revision = %s
"""


def numbers() -> tuple[int, int, int]:
    with connection.cursor() as cursor:
        cursor.execute(NUMBERS)
        version, registrations, revision = cursor.fetchone()
    return version, registrations, revision


@transaction.atomic
def restore_another_past(version: int, registrations: int, revision: int) -> None:
    """Restore other switches and tokens than were served, under plausible numbers."""
    Episode.objects.all().delete()
    Switch.objects.all().delete()
    Token.objects.all().delete()
    engage("of-then")
    make_token("ofthen0001")
    with connection.cursor() as cursor:
        cursor.execute(RESTORED, [version, registrations, revision])


def begin_epoch() -> Publication:
    return services.begin_epoch(
        reason="backup of 02:00 UTC restored", actor=system_actor("test"), now=timezone.now()
    )


def test_restored_backup_is_refused_and_the_age_tells(following: Following) -> None:
    make_token()
    engage("one")
    wait_until(has(following, engage("two")), 3)
    served = following.state.copy
    version, registrations, revision = numbers()

    restore_another_past(version - 1, registrations, revision)
    wait_until(lambda: following.state.age_seconds() > 5 * POLL_SECONDS, 3)

    assert following.state.copy is served
    assert get_tokens(following) == {b"reader0001"}


def test_new_epoch_makes_it_the_truth_with_its_switches_and_its_tokens(
    following: Following,
) -> None:
    """Includes parts whose numbers happen to equal those served before."""
    make_token()
    engage("one")
    version = engage("two")
    wait_until(lambda: has(following, version)() and get_tokens(following) == {b"reader0001"}, 3)
    left = following.state.copy
    _, registrations, revision = numbers()
    following.database.cut()

    restore_another_past(version - 1, registrations, revision)
    began = begin_epoch()
    following.database.mend()
    wait_until(lambda: following.state.status().epoch == began.epoch, 5)

    assert following.state.copy is not None
    assert set(following.state.copy.entries) == {"segment:of-then"}
    wait_until(lambda: following.state.known == {"segment:of-then"}, 0.5)
    wait_until(lambda: get_tokens(following) == {b"ofthen0001"}, 0.5)
    assert left is not None
    assert following.state.left_epochs == {left.publication.epoch}


def test_epoch_that_was_left_is_never_served_again(following: Following) -> None:
    wait_until(has(following, engage("one")), 3)
    first = Publication.objects.get()
    began = begin_epoch()
    wait_until(lambda: following.state.status().epoch == began.epoch, 3)

    Publication.objects.update(epoch=first.epoch, version=began.version + 5)
    wait_until(lambda: following.state.age_seconds() > 5 * POLL_SECONDS, 3)

    assert following.state.status().epoch == began.epoch
