"""The plane follows the database: published changes arrive once, with Redis or without."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.accounts.models.tokens import Token, TokenCaller
from controlplane.accounts.tokens import services as tokens
from controlplane.core import wakeups
from controlplane.core.actors import system_actor
from controlplane.core.protocol import WAKE_CHANNEL
from controlplane.core.roles import Role
from controlplane.dataplane.config import Config
from controlplane.dataplane.tests.conftest import POLL_SECONDS, Following
from controlplane.dataplane.tests.lines import wait_until
from switches import services
from switches.models import Episode, Publication
from switches.snapshot import OrderIds, render

A_SECOND = 1.5
"""One second, and what a busy test machine adds to it."""
A_POLL = POLL_SECONDS + 0.7
"""The same of one poll: without a wake-up, a change is seen by then."""

REASON = "Payment provider returns wrong totals, INC-7"


def engage(key: str) -> int:
    """Engage a segment by the product's own service; return the published version."""
    done = services.engage(
        scope="segment",
        key=key,
        reason=REASON,
        expires_in="24h",
        actor=system_actor("test"),
        now=timezone.now(),
    )
    return done.switch.version


def make_token(prefix: str = "reader0001", **more: object) -> Token:
    owner, _ = User.objects.get_or_create(username="ann", defaults={"role": Role.VIEWER})
    fields = {
        "name": "test",
        "owner": owner,
        "prefix": prefix,
        "digest": sha256(b"secret").hexdigest(),
        "scopes": ["switches:read", "switches:write"],
        "created_at": timezone.now(),
    }
    return Token.objects.create(**{**fields, **more})


def get_tokens(following: Following) -> set[bytes]:
    return set(following.state.tokens or ())


def has(following: Following, version: int) -> Callable[[], bool]:
    return lambda: following.state.status().version == version


def confirmed(following: Following, times: int = 3) -> None:
    """Wait for so many further confirmations by the database."""
    state = following.state
    for _ in range(times):
        asked_at = state.now()
        wait_until(lambda asked_at=asked_at: state.now() - state.age_seconds() >= asked_at, 3)


def test_start_serves_what_was_published_before(idle: Following) -> None:
    version = engage("finance")
    make_token()

    idle.start()

    assert idle.state.status().version == version
    assert idle.state.status().database_reachable
    assert idle.state.copy is not None
    assert set(idle.state.copy.entries) == {"segment:finance"}
    assert get_tokens(idle) == {b"reader0001"}


def test_wake_up_brings_a_commit_in_a_fraction_of_the_poll(idle: Following) -> None:
    idle.config = replace(idle.config, poll_seconds=30.0)
    idle.start()
    wait_until(lambda: idle.redis.accepted > 0, 5)
    time.sleep(0.2)

    for key in ("a", "b", "c"):
        assert wait_until(has(idle, engage(key)), 5) < 2


def test_role_to_assume_is_assumed_or_nothing_is_read(idle: Following) -> None:
    engage("finance")
    own = str(connection.settings_dict["USER"])
    idle.config = replace(idle.config, assume_role="no such role")
    idle.start()
    assert idle.state.copy is None
    idle.stop()

    idle.config = replace(idle.config, assume_role=own)
    idle.start()
    assert idle.state.copy is not None


def test_poll_alone_leaves_room_for_its_round_trip_within_a_second() -> None:
    assert Config("", None, "").poll_seconds <= 0.9


def test_without_redis_a_change_is_seen_by_the_next_poll(following: Following) -> None:
    following.redis.cut()

    for key in ("a", "b", "c"):
        assert wait_until(has(following, engage(key)), 5) < A_POLL


def test_redis_back_after_a_while_wakes_again(idle: Following) -> None:
    idle.config = replace(idle.config, poll_seconds=60.0)
    idle.redis.cut()
    idle.start()
    version = engage("missed")
    time.sleep(0.2)
    assert idle.state.status().version != version

    idle.redis.mend()

    # The first subscription polls at once, for messages missed before it.
    wait_until(has(idle, version), 8)
    wait_until(has(idle, engage("heard")), 2)


def test_release_and_undo_leave_the_document(following: Following) -> None:
    wait_until(has(following, engage("finance")), 3)

    services.undo(scope="segment", key="finance", actor=system_actor("test"), now=timezone.now())

    wait_until(lambda: following.state.copy is not None and not following.state.copy.entries, 3)


def test_document_is_that_of_the_tables(following: Following) -> None:
    version = engage("finance")
    Episode.objects.update(allow_percent="12.50")
    with transaction.atomic():
        publication = Publication.objects.select_for_update().get()
        publication.version += 1
        publication.save()
    wait_until(has(following, version + 1), 3)

    copy = following.state.copy
    assert copy is not None
    (entry,) = copy.entries.values()
    episode = Episode.objects.get()
    assert (entry.salt, entry.reason, entry.on_expiry) == (episode.salt, REASON, "hold")
    assert (entry.engaged_at, entry.expires_at) == (episode.engaged_at, episode.expires_at)
    assert (entry.state, str(entry.allow_percent)) == ("ramping", "12.50")
    assert copy.publication.epoch == publication.epoch
    assert copy.body == render(copy.publication, [entry], OrderIds())


def test_unchanged_version_is_rendered_once(following: Following) -> None:
    wait_until(has(following, engage("finance")), 3)
    served = following.state.copy

    for _ in range(20):
        wakeups._get_waker().publish(WAKE_CHANNEL, "snapshot")
        time.sleep(0.02)
    make_token()
    wait_until(lambda: get_tokens(following) == {b"reader0001"}, 3)

    assert following.state.copy is served


def test_storm_of_wake_ups_is_few_polls(following: Following) -> None:
    wait_until(has(following, engage("finance")), 3)
    with connection.cursor() as cursor:
        before = _statements(cursor)
        client = redis.Redis.from_url(settings.REDIS_URL)
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(2000):
                pipeline.publish(WAKE_CHANNEL, "snapshot")
            pipeline.execute()
        time.sleep(0.5)

        assert _statements(cursor) - before < 500


def _statements(cursor: object) -> int:
    """Return the number of transactions of this database; each poll is one."""
    cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")  # type: ignore
    cursor.execute(  # type: ignore
        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    )
    return cursor.fetchone()[0]  # type: ignore


def test_answer_from_the_past_is_dropped_and_confirms_nothing(following: Following) -> None:
    version = engage("finance")
    wait_until(has(following, version), 3)

    Publication.objects.update(version=version - 1)
    wait_until(lambda: following.state.age_seconds() > 5 * POLL_SECONDS, 3)
    assert following.state.status().version == version

    Publication.objects.update(version=version + 1)
    wait_until(has(following, version + 1), 3)
    wait_until(lambda: following.state.age_seconds() < 5 * POLL_SECONDS, 3)


def test_new_epoch_counts_afresh_and_the_old_one_stays_left(following: Following) -> None:
    version = engage("finance")
    wait_until(has(following, version), 3)
    old, new = Publication.objects.get().epoch, uuid4()

    Publication.objects.update(epoch=new, version=0)
    wait_until(lambda: following.state.status().epoch == new, 3)
    Publication.objects.update(epoch=old, version=version + 5)
    wait_until(lambda: following.state.age_seconds() > 5 * POLL_SECONDS, 3)

    assert following.state.status().epoch == new
    assert following.state.status().version == 0


@pytest.mark.parametrize(
    "end",
    [
        lambda token: tokens.revoke_token(
            token=token, actor=system_actor("test"), now=timezone.now()
        ),
        lambda token: User.objects.filter(pk=token.owner_id).update(is_active=False),
        lambda token: token.delete(),
    ],
    ids=["revoked", "owner deactivated", "deleted"],
)
def test_token_that_ended_is_out_by_the_next_poll(
    following: Following, end: Callable[[Token], object]
) -> None:
    token = make_token()
    wait_until(lambda: b"reader0001" in get_tokens(following), 3)

    end(token)

    assert wait_until(lambda: b"reader0001" not in get_tokens(following), 5) < A_POLL


def test_token_may_only_what_its_owners_role_allows(following: Following) -> None:
    make_token()
    wait_until(lambda: b"reader0001" in get_tokens(following), 3)
    assert following.state.tokens is not None
    assert following.state.tokens[b"reader0001"].scopes == {"switches:read"}

    User.objects.update(role=Role.OPERATOR)

    both = {"switches:read", "switches:write"}
    wait_until(lambda: (following.state.tokens or {})[b"reader0001"].scopes == both, 3)


def test_token_of_a_team_is_an_operators_whatever_becomes_of_its_owner(
    following: Following,
) -> None:
    team = Team.objects.create(slug="payments", name="Payments", created_at=timezone.now())
    make_token(team=team, patterns=["segment:pay*"], only_owned=True)
    User.objects.update(is_active=False)

    wait_until(lambda: b"reader0001" in get_tokens(following), 3)

    known = (following.state.tokens or {})[b"reader0001"]
    assert (known.role, known.team) == (Role.OPERATOR, "payments")
    assert known.scopes == {"switches:read", "switches:write"}
    assert (known.patterns, known.only_owned) == ({"segment:pay*"}, True)


def test_use_of_a_token_is_noted_and_changes_no_credential(following: Following) -> None:
    token = make_token()
    wait_until(lambda: b"reader0001" in get_tokens(following), 3)
    table = following.state.tokens

    following.state.used_tokens.add(token.pk)

    wait_until(lambda: Token.objects.get().last_used_at is not None, 5)
    assert timezone.now() - Token.objects.get().last_used_at < timedelta(seconds=5)
    confirmed(following)
    assert following.state.tokens is table


def test_owners_of_services_follow_the_teams(following: Following) -> None:
    above = Team.objects.create(slug="finance", name="Finance", created_at=timezone.now())
    team = Team.objects.create(
        slug="payments", name="Payments", parent=above, created_at=timezone.now()
    )
    make_token()
    Ownership.objects.create(pattern="service:core", team=team)
    wait_until(lambda: following.state.owners.owner_of("service:core") == "payments", 3)
    known = (following.state.tokens or {})[b"reader0001"]
    assert following.state.callers.find_owner_of_instance(known, b"core/a1") == "payments"

    Membership.objects.create(team=above, user=User.objects.get())

    def is_own() -> bool:
        known = (following.state.tokens or {})[b"reader0001"]
        return following.state.callers.find_owner_of_instance(known, b"core/a1") == ""

    wait_until(is_own, 3)


def test_callers_of_tokens_are_noted(following: Following) -> None:
    team = Team.objects.create(slug="payments", name="Payments", created_at=timezone.now())
    token = make_token()
    Ownership.objects.create(pattern="service:core", team=team)
    wait_until(lambda: following.state.owners.owner_of("service:core") == "payments", 3)
    known, callers = (following.state.tokens or {})[b"reader0001"], following.state.callers

    for name in (b"core/a1", b"web/a1", b"web/a2"):
        callers.find_owner_of_instance(known, name)
    callers.note_use(token.pk + 1, "of a token that nobody has")

    wait_until(lambda: TokenCaller.objects.count() == 2, 5)
    core, web = TokenCaller.objects.order_by("service")
    assert (core.used_at, core.is_refused) == (None, True)
    assert (web.refused_at, web.is_refused) == (None, False)
    first = web.used_at
    callers.find_owner_of_instance(known, b"web/a1")
    wait_until(lambda: TokenCaller.objects.get(service="web").used_at > first, 5)


def test_callers_of_one_token_are_limited(following: Following) -> None:
    token = make_token()
    wait_until(lambda: b"reader0001" in get_tokens(following), 3)
    now = timezone.now()
    TokenCaller.objects.bulk_create(
        TokenCaller(token=token, service=f"s{number}", used_at=now) for number in range(200)
    )
    known = (following.state.tokens or {})[b"reader0001"]

    for name in (b"new/a1", b"s7/a1"):
        following.state.callers.find_owner_of_instance(known, name)

    wait_until(lambda: TokenCaller.objects.get(service="s7").used_at > now, 5)
    assert TokenCaller.objects.count() == 200
