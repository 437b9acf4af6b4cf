"""Lost versions: what they engaged is engaged again, and people decide about each difference."""

import json
from datetime import timedelta
from uuid import uuid4

import orjson
import pytest
from django.db import connection

from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import person
from controlplane.core.retention import purge
from switches import services
from switches.lost_versions import attention, decisions
from switches.lost_versions.reconciliation import reconcile_lost_versions
from switches.message_templates import format_lost_version
from switches.models import Episode, LostChange, LostVersion, Publication, PublishedVersion, Rule
from switches.retention_rules import PUBLISHED_VERSIONS
from switches.snapshot import SnapshotEntry, render_entry
from switches.tests import messages

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
PROMOTED = "UPDATE switches_publishedversion SET timeline = switches_timeline() - 1"
REASON = "card payments charged twice, INC-7"


def entry(switch="feature:chat", **more):
    scope, _, key = switch.partition(":")
    now = db_now()
    fields = {
        "allow_percent": 0,
        "salt": "s",
        "reason": REASON,
        "engaged_at": now - HOUR,
        "expires_at": now + HOUR,
        "on_expiry": "ramp",
    }
    return SnapshotEntry(switch, scope, key, **{**fields, **more})


def lose(*entries, ahead=1, promoted=True, plane="dp-1"):
    """Store the report of a version that is `ahead` of the database's."""
    head = Publication.objects.get()
    if promoted:
        with connection.cursor() as cursor:
            cursor.execute(PROMOTED)
    return LostVersion.objects.create(
        epoch=head.epoch,
        version=head.version + ahead,
        published_at=db_now(),
        entries=[orjson.loads(render_entry(one)) for one in entries],
        plane=plane,
    )


def engage(switch="feature:chat", **more):
    scope, _, key = switch.partition(":")
    fields = {"reason": "ledger rows are missing", "expires_in": "30m", **more}
    actor = system_actor("test")
    done = services.engage(scope=scope, key=key, actor=actor, now=db_now(), **fields)
    return done.episode


def release(switch="feature:chat"):
    scope, _, key = switch.partition(":")
    services.release(
        scope=scope,
        key=key,
        justification="duplicates refunded",
        mode="immediate",
        actor=person("admin", "ann").as_actor(),
        now=db_now(),
    )


class TestReconcile:
    def test_a_lost_engagement_is_in_the_first_version_of_a_new_epoch(self, settings):
        messages.configure(settings)
        lost, left, now = lose(one := entry()), Publication.objects.get(), db_now()

        assert reconcile_lost_versions(now) == 1

        head, episode = Publication.objects.get(), Episode.objects.get()
        assert head.epoch != left.epoch
        assert (episode.switch_id, episode.reason) == ("feature:chat", REASON)
        assert (episode.engaged_at, episode.expires_at) == (one.engaged_at, one.expires_at)
        assert (episode.on_expiry, episode.engaged_by_name) == ("hold", "failover")
        lost.refresh_from_db()
        assert (lost.closed_at, lost.closed_version) == (now, head.version)
        began = AuditEntry.objects.get(action="epoch.began")
        assert "dp-1" in began.reason
        (message,) = messages.find("publication.changes_lost")
        assert message.payload["changes"] == "1 change"
        (message,) = messages.find("switch.engaged")
        why = "version 1, which PostgreSQL has lost and dp-1 has"
        assert format_lost_version(message.payload) == why

    def test_it_happens_once(self):
        lose(entry())
        reconcile_lost_versions(db_now())
        epoch = Publication.objects.get().epoch

        assert reconcile_lost_versions(db_now()) == 0
        assert Publication.objects.get().epoch == epoch
        assert Episode.objects.count() == 1

    def test_two_data_planes_begin_one_epoch(self):
        lose(entry(), ahead=1)
        lose(entry(), entry("feature:search"), ahead=2, plane="dp-2")

        assert reconcile_lost_versions(db_now()) == 2

        assert AuditEntry.objects.filter(action="epoch.began").count() == 1
        assert Episode.objects.count() == 2

    def test_what_the_newest_lost_version_released_is_not_engaged_by_an_older_one(self):
        lose(entry(), ahead=1)
        lose(ahead=2, plane="dp-2")

        reconcile_lost_versions(db_now())

        assert not Episode.objects.exists()

    def test_a_release_that_is_reported_later_is_left_to_a_person(self):
        epoch = Publication.objects.get().epoch
        lose(entry(), ahead=1)
        reconcile_lost_versions(db_now())
        later = lose(ahead=2, plane="dp-2")
        LostVersion.objects.filter(pk=later.pk).update(epoch=epoch)

        reconcile_lost_versions(db_now())

        change = LostChange.objects.get()
        assert (change.was_engaged, change.lost_version_id) == (False, later.pk)
        assert Episode.objects.get().ended_at is None

    def test_a_lost_release_is_told_and_not_repeated(self):
        episode = engage()
        lose()

        reconcile_lost_versions(db_now())

        episode.refresh_from_db()
        assert episode.ended_at is None
        change = decisions.find_undecided().get()
        assert (change.episode, change.was_engaged) == (episode, False)

    def test_an_engagement_after_the_lost_version_is_no_lost_release(self):
        lose()
        engage()
        engage("feature:search")

        reconcile_lost_versions(db_now())

        assert not LostChange.objects.exists()

    def test_an_engagement_that_lasted_longer_is_extended(self):
        episode = engage()
        lose(entry(engaged_at=episode.engaged_at, expires_at=db_now() + 5 * HOUR))

        reconcile_lost_versions(db_now())

        before, episode = episode.expires_at, Episode.objects.get()
        assert episode.expires_at > before + 4 * HOUR
        assert decisions.find_undecided().get().episode == episode

    def test_the_same_engagement_is_no_difference(self):
        episode = engage()
        lose(entry(engaged_at=episode.engaged_at, expires_at=episode.expires_at))

        reconcile_lost_versions(db_now())

        assert not LostChange.objects.exists()

    def test_an_engagement_that_a_person_ended_since_is_not_repeated(self):
        episode = engage()
        release()
        lose(entry(engaged_at=episode.engaged_at))

        reconcile_lost_versions(db_now())

        assert not Episode.objects.filter(ended_at=None).exists()

    def test_a_lapsed_engagement_is_not_repeated(self):
        lose(entry(on_expiry="release", expires_at=db_now() - timedelta(seconds=1)))

        reconcile_lost_versions(db_now())

        assert not Episode.objects.exists()

    def test_a_switch_that_was_ramping_is_engaged_if_its_episode_is_lost(self):
        lose(entry(allow_percent=25))

        reconcile_lost_versions(db_now())

        assert Episode.objects.get().state == "engaged"

    def test_safety_rules_leave_a_review(self):
        engage("feature:search")
        Rule.objects.create(
            name="one at a time",
            kind="at_most",
            switches=["feature:*"],
            n=1,
            created_by="ann",
            created_at=db_now(),
            changed_at=db_now(),
        )
        lose(entry(), entry("feature:search"))

        reconcile_lost_versions(db_now())

        assert AuditEntry.objects.filter(action="review.opened").count() == 1

    def test_a_version_that_the_database_has_engages_nothing(self):
        lost = lose(entry())
        PublishedVersion.objects.create(
            epoch=lost.epoch, version=lost.version, published_at=lost.published_at, timeline=0
        )

        assert reconcile_lost_versions(db_now()) == 1
        assert not Episode.objects.exists()


class TestServerThatWasNotPromoted:
    def test_it_waits_for_a_person_and_names_the_command(self):
        lose(entry(), promoted=False)
        left = Publication.objects.get().epoch

        assert reconcile_lost_versions(db_now()) == 0

        assert Publication.objects.get().epoch == left
        assert attention.list_waiting(db_now()) == []
        (item,) = attention.list_waiting(db_now() + timedelta(minutes=1))
        assert "manage.py epoch begin" in item.detail

    def test_a_report_about_an_earlier_epoch_needs_no_new_one(self):
        lost = lose(entry(), promoted=False)
        LostVersion.objects.filter(pk=lost.pk).update(epoch=uuid4())
        epoch = Publication.objects.get().epoch

        assert reconcile_lost_versions(db_now()) == 1
        assert Publication.objects.get().epoch == epoch
        assert Episode.objects.exists()


class TestDecide:
    def test_kept_by_a_person(self):
        lose(entry())
        reconcile_lost_versions(db_now())
        (item,) = attention.list_lost_changes(db_now())
        assert item.title == "1 change was lost: keep the switches engaged?"
        kim, change = person("operator", "kim"), LostChange.objects.get()

        assert decisions.keep_engaged([change.pk], actor=kim.as_actor(), now=db_now()) == 1

        change.refresh_from_db()
        assert change.kept_by == "user:kim"
        row = AuditEntry.objects.get(action="lost_change.kept")
        assert (row.actor_name, row.target) == ("kim", "feature:chat")
        assert json.loads(row.after)["state"] == "engaged"
        assert attention.list_lost_changes(db_now()) == []

    def test_a_release_decides_too(self):
        lose(entry())
        reconcile_lost_versions(db_now())

        release()

        assert not decisions.find_undecided().exists()

    def test_a_viewer_may_not(self):
        lose(entry())
        reconcile_lost_versions(db_now())
        viewer = person("viewer", "val").as_actor()

        with pytest.raises(Forbidden):
            decisions.keep_engaged([LostChange.objects.get().pk], actor=viewer, now=db_now())


def test_the_number_of_the_current_version_is_never_purged():
    engage("segment:finance")
    current = Publication.objects.get()
    later = current.published_at + timedelta(days=500)

    assert purge([PUBLISHED_VERSIONS], later) > 0

    left = PublishedVersion.objects.values_list("epoch", "version")
    assert [*left] == [(current.epoch, current.version)]


class TestPage:
    def test_it_lists_and_keeps_the_selected(self, client):
        engage("segment:finance")
        lose(entry(), entry("feature:search"))
        reconcile_lost_versions(db_now())
        client.force_login(person("operator", "kim"))

        page = client.get("/lost-changes/").content.decode()
        chosen = LostChange.objects.get(episode__switch="feature:chat")
        answer = client.post("/lost-changes/", {"change": [chosen.pk]}, follow=True)

        for text in (
            "3 changes were lost",
            "feature:chat",
            REASON,
            "Engaged again",
            "Release lost",
        ):
            assert text in " ".join(page.split())
        assert "1 switch stays engaged." in answer.content.decode()
        left = decisions.find_undecided().values_list("episode__switch", flat=True)
        assert set(left) == {"feature:search", "segment:finance"}
