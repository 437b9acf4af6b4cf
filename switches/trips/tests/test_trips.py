"""Recorded trips: engaged switches, repeats and people's releases."""

from datetime import timedelta

import pytest

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden, InvalidInput
from controlplane.core.outbox.models import OutboxMessage
from switches import services as switches
from switches.models import Episode, Publication, Trip, TripPolicy
from switches.trips import policies
from switches.trips.tests.requests import (
    FLAG,
    NOON,
    engage,
    find_messages,
    kim,
    list_audit_actions,
    list_outcomes,
    noon_plus,
    release,
    request_stop,
    resolve,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("slack_configured")]


def test_allowed_trip_engages_with_its_evidence():
    version = Publication.objects.get().version

    result = request_stop()

    episode = Episode.objects.get(ended_at__isnull=True)
    assert result.tripped
    assert result.trip.episode == episode
    assert result.trip.policy.trigger == "provider-outage"
    assert (episode.switch_id, episode.engaged_by_name) == (FLAG, "monitor")
    assert episode.evidence == {"p95_seconds": 7.4}
    assert episode.expires_at == noon_plus(hours=1)
    assert Publication.objects.get().version == version + 1
    assert list_audit_actions("switch.") == ["switch.engaged"]
    assert list_audit_actions() == ["trip.tripped"]


def test_short_reason_is_made_whole_rather_than_refused():
    result = request_stop(reason="bad")

    assert result.tripped
    assert Episode.objects.get().reason == (
        "Tripped by latency-monitor (fingerprint p95-high): bad"
    )


def test_expiry_is_capped_by_the_policy():
    TripPolicy.objects.filter(trigger="provider-outage").update(longest_minutes=30)

    request_stop(expires_in="7d")

    assert Episode.objects.get().expires_at == noon_plus(minutes=30)


def test_repeats_are_counted_and_keep_the_latest_evidence():
    first = request_stop()
    for minute in range(1, 6):
        again = request_stop(noon_plus(minutes=minute), evidence={"p95_seconds": minute})
        assert not again.tripped
        assert again.trip.pk == first.trip.pk

    row = Trip.objects.get(pk=first.trip.pk)
    assert (row.repeats, row.last_at) == (5, noon_plus(minutes=5))
    assert row.evidence == {"p95_seconds": 7.4}
    assert list_outcomes() == ["tripped", "duplicate"]
    assert Trip.objects.get(outcome="duplicate").evidence == {"p95_seconds": 5}
    assert Episode.objects.count() == 1
    assert list_audit_actions() == ["trip.tripped"]


def test_evidence_for_a_switch_that_a_person_engaged_is_kept_with_its_episode():
    engage(NOON)

    result = request_stop(noon_plus(minutes=1))

    assert not result.tripped
    assert "user:kim" in result.why
    assert result.trip.episode == Episode.objects.get()
    assert list_outcomes() == ["engaged"]


def test_what_a_person_released_stays_released_until_resolved_and_an_hour_has_passed():
    request_stop()
    release(noon_plus(minutes=10))

    assert "user:kim released feature:checkout" in request_stop(noon_plus(minutes=11)).why
    assert not request_stop(noon_plus(hours=5)).tripped
    resolve(noon_plus(hours=5, minutes=1))
    assert request_stop(noon_plus(hours=5, minutes=2)).tripped
    assert list_outcomes() == ["tripped", "refused", "tripped"]


def test_within_the_hour_it_stays_released_although_it_resolved():
    request_stop()
    release(noon_plus(minutes=10))
    resolve(noon_plus(minutes=11))

    result = request_stop(noon_plus(minutes=12))
    assert not result.tripped
    assert "13:10 UTC at the earliest" in result.why
    assert not request_stop(noon_plus(minutes=69)).tripped
    assert request_stop(noon_plus(minutes=71)).tripped


def test_undo_by_a_person_holds_as_a_release_does():
    engage(NOON)
    request_stop(noon_plus(seconds=5))
    switches.undo(scope="feature", key="checkout", actor=kim().as_actor(), now=noon_plus(seconds=9))

    assert not request_stop(noon_plus(seconds=12)).tripped


def test_another_alert_may_stop_what_a_person_let_flow():
    request_stop()
    release(noon_plus(minutes=10))

    assert request_stop(noon_plus(minutes=11), fingerprint="errors-high").tripped


def test_alert_not_heard_of_for_a_day_counts_as_resolved():
    request_stop()
    release(noon_plus(minutes=10))

    assert not request_stop(noon_plus(hours=23)).tripped
    assert request_stop(noon_plus(hours=48)).tripped


def test_expired_episode_is_not_followed_by_another_while_the_alert_goes_on():
    request_stop(expires_in="10m")
    Episode.objects.update(
        ended_at=noon_plus(minutes=10), ended_how="expired", ended_by="system:expiry"
    )

    assert "has not resolved since" in request_stop(noon_plus(minutes=30)).why
    resolve(noon_plus(minutes=40))
    assert request_stop(noon_plus(minutes=50)).tripped


def test_resolved_alert_releases_nothing_and_tells_the_thread():
    request_stop()

    effect = resolve(noon_plus(minutes=5))

    assert effect == f"Alert resolved. {FLAG} stays engaged until someone releases it."
    assert Episode.objects.get().ended_at is None
    assert Trip.objects.get().resolved_at == noon_plus(minutes=5)
    assert find_messages("trip.resolved").get().subject == f"episode:{Episode.objects.get().pk}"
    assert list_audit_actions() == ["trip.tripped", "trip.resolved"]
    assert "No open trip matches" in resolve(noon_plus(minutes=6))


def test_firing_again_while_its_episode_is_open_is_a_repeat():
    request_stop()
    resolve(noon_plus(minutes=5))

    result = request_stop(noon_plus(minutes=6))

    assert not result.tripped
    assert Trip.objects.filter(resolved_at__isnull=False).count() == 0
    assert "stays engaged" in resolve(noon_plus(minutes=7))


def test_messages_of_a_trip_are_in_the_thread_of_its_episode():
    result = request_stop()

    subjects = OutboxMessage.objects.filter(event__in=["switch.engaged", "trip.tripped"])
    assert {row.subject for row in subjects} == {f"episode:{result.trip.episode_id}"}
    assert len(subjects) == 2


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"switch": "checkout"}, "switch"),
        ({"switch": "feature:"}, "switch"),
        ({"switch": "feature:a:b"}, "switch"),
        ({"switch": "global:everything"}, "switch"),
        ({"source": " "}, "source"),
        ({"source": "x" * 121}, "source"),
        ({"fingerprint": "\x00"}, "fingerprint"),
        ({"fingerprint": "x" * 201}, "fingerprint"),
        ({"reason": " \u200b "}, "reason"),
        ({"reason": "x" * 20_001}, "reason"),
        ({"evidence": {"a": "x" * 33_000}}, "evidence"),
        ({"expires_in": "permanent"}, "expires_in"),
        ({"expires_in": "soon"}, "expires_in"),
    ],
)
def test_what_cannot_be_read_is_an_error(fields, wrong):
    with pytest.raises(InvalidInput) as error:
        request_stop(**fields)

    assert set(error.value.errors) == {wrong}
    assert not Trip.objects.exists()


def test_without_the_scope_nothing_is_asked():
    with pytest.raises(Forbidden):
        request_stop(actor=Actor(type="token", name="other"))


def test_removing_a_policy_keeps_its_trips():
    request_stop()
    admin = kim().__class__.objects.create_user("root", role="admin").as_actor()

    policies.remove_policy(trigger="provider-outage", actor=admin, now=noon_plus(minutes=1))

    assert Trip.objects.get().policy is None
    assert not request_stop(noon_plus(minutes=2), switch="feature:b", fingerprint="z").tripped
    assert Trip.objects.latest("id").at - NOON == timedelta(minutes=2)
