"""Reconciliation of emergency orders with episodes."""

import json
from datetime import timedelta

import pytest

from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.signatures import SigningKey
from switches import services
from switches.message_templates import format_emergency
from switches.models import EmergencyOrder, Episode, Publication, Ramp, Rule, Switch
from switches.services.expire import expire_due
from switches.tests import messages

from .orders import REASON, person_with_code, reconcile, reload, store, store_by

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def engage(actor, switch="segment:finance", **more):
    scope, _, key = switch.partition(":")
    fields = {"reason": "ledger rows are missing", "expires_in": "1h", **more}
    return services.engage(scope=scope, key=key, actor=actor, now=db_now(), **fields)


def release(actor, switch="segment:finance", **more):
    scope, _, key = switch.partition(":")
    return services.release(
        scope=scope, key=key, justification="duplicates refunded", actor=actor, now=db_now(), **more
    )


def audit_after(action):
    return json.loads(AuditEntry.objects.get(action=action).after)


def version():
    return Publication.objects.get().version


class TestEngage:
    def test_an_order_becomes_an_ordinary_episode_since_its_time(self, settings):
        messages.configure(settings)
        order = store(at=db_now() - 2 * HOUR)
        before, now = version(), db_now()

        assert reconcile(now) == 1

        episode = Episode.objects.get()
        assert (episode.switch_id, episode.reason) == ("segment:finance", REASON)
        assert (episode.engaged_by_type, episode.engaged_by_name) == ("user", "kim")
        assert episode.engaged_by_identity == f"user:{order.by_id}"
        assert episode.engaged_at == order.at
        assert episode.expires_at == order.at + DAY
        assert episode.on_expiry == "hold"
        order = reload(order)
        assert (order.state, order.episode, order.closed_at) == ("reconciled", episode, now)
        assert order.closed_version == version() == before + 1 == episode.engaged_version
        entry = audit_after("switch.engaged")["emergency"]
        assert (entry["plane"], entry["by"], entry["planes"]) == ("dp-1", "user:kim", ["dp-1"])
        assert episode.evidence == {"emergency_order": entry}
        (message,) = messages.find("switch.engaged")
        assert message.payload["emergency"]["plane"] == "dp-1"

    def test_evidence_and_messages_name_the_relay_that_accepted_the_order(self, settings):
        messages.configure(settings)
        key = SigningKey.generate().public
        store(plane="eu-1", relay=str(key))

        reconcile()

        facts = Episode.objects.get().evidence["emergency_order"]
        assert (facts["plane"], facts["relay"]) == ("eu-1", key.id)
        assert "on the relay eu-1" in Approval.objects.get().summary
        (message,) = messages.find("switch.engaged")
        assert "engaged it on the relay eu-1" in format_emergency(message.payload)

    def test_it_happens_once(self):
        store()
        reconcile()

        assert reconcile() == 0
        assert Episode.objects.count() == 1

    def test_an_unknown_switch_is_registered(self):
        store("feature:never-seen")

        reconcile()

        assert Switch.objects.get().state == "engaged"
        assert Publication.objects.get().registrations == 1

    def test_planes_that_had_the_order_are_evidence(self):
        order = store()
        EmergencyOrder.objects.update(planes=["dp-3", "dp-2"])

        reconcile()

        facts = reload(order).episode.evidence["emergency_order"]
        assert facts["planes"] == ["dp-1", "dp-2", "dp-3"]

    def test_an_order_that_expired_meanwhile_is_held_and_overdue(self):
        store(at=db_now() - 5 * HOUR, expires_in="1h")

        reconcile()
        expire_due(db_now())

        episode = Episode.objects.get()
        assert episode.overdue
        assert Switch.objects.get().state == "engaged"

    def test_a_time_in_the_future_counts_as_now(self):
        store(at=db_now() + HOUR, expires_in="1h")
        now = db_now()

        reconcile(now)

        episode = Episode.objects.get()
        assert (episode.engaged_at, episode.expires_at) == (now, now + HOUR)

    def test_permanent_is_requested_as_by_an_ordinary_engage(self):
        order = store(expires_in="permanent")

        reconcile()

        request = Approval.objects.get(kind="permanent")
        assert request.requester_id == order.by_id
        assert Episode.objects.get().expires_at == order.at + DAY
        approvals.approve(request.pk, comment="", actor=person("approver").as_actor(), now=db_now())
        assert Episode.objects.get().permanent

    def test_a_token_can_give_orders(self, token):
        store(by_type="token", by_name=token.name, by_id=token.pk)

        reconcile()

        episode = Episode.objects.get()
        assert episode.engaged_by_identity == f"token:{token.pk}"
        assert episode.engaged_by_id == token.owner_id
        assert AuditEntry.objects.get(action="switch.engaged").actor_type == "token"

    def test_an_order_of_a_new_epoch_is_closed_in_it(self):
        order = store()
        head = services.begin_epoch(
            reason="backup of 02:00 UTC restored, INC-7",
            actor=person("admin").as_actor(),
            now=db_now(),
        )

        reconcile()

        assert reload(order).closed_version > head.began_version
        assert Publication.objects.get().epoch == head.epoch

    def test_one_that_fails_does_not_stop_the_others(self):
        # No release of this project writes such a row: its permanent request conflicts.
        failing = store("segment:a", expires_in="permanent", at=db_now() - HOUR)
        Approval.objects.create(
            kind="permanent",
            target="segment:a",
            summary="Keep it",
            diff={"episode": 0},
            reason="r",
            risk="high",
            requested_by="user:lee",
            requested_at=db_now(),
            expires_at=db_now() + HOUR,
        )
        store("segment:b")

        with pytest.raises(ExceptionGroup):
            reconcile()

        assert Switch.objects.get().pk == "segment:b"
        assert reload(failing).state == "received"


class TestReview:
    def test_each_order_leaves_a_review_for_a_second_person(self):
        order = store()

        reconcile()

        review = Approval.objects.get(kind="break_glass_review")
        assert review.requester_id == order.by_id
        assert review.summary == "Emergency order: segment:finance engaged on the data plane dp-1"
        assert review.diff["rules"] == []
        assert Episode.objects.get().broke_glass is None

    def test_refusing_rules_are_named_and_do_not_shorten_the_expiry(self, settings):
        messages.configure(settings)
        add_rule("one segment", "at_most", ["segment:*"], n=1)
        engage(person("operator", "lee").as_actor(), "segment:search")
        order = store()

        reconcile()

        episode = Episode.objects.get(switch="segment:finance")
        assert episode.broke_glass["rules"] == ["one segment"]
        assert episode.expires_at == order.at + DAY
        review = Approval.objects.get(kind="break_glass_review")
        assert review.diff["rules"] == ["one segment"]
        assert "data plane dp-1" in review.reason
        assert messages.find("switch.broke_glass", switch="segment:finance")

    def test_against_a_rule_nothing_permanent_is_requested(self):
        add_rule("one segment", "at_most", ["segment:*"], n=1)
        engage(person("operator", "lee").as_actor(), "segment:search")
        store(expires_in="permanent")

        reconcile()

        assert not Approval.objects.filter(kind="permanent").exists()


class TestAttach:
    def test_an_order_for_an_engaged_switch_is_attached_to_its_episode(self):
        lee = person("operator", "lee").as_actor()
        episode = engage(lee, expires_in="7d").episode
        order = store()
        before = version()

        reconcile()

        order = reload(order)
        assert (order.state, order.episode) == ("attached", episode)
        assert order.closed_version == version() == before + 1
        assert Episode.objects.get().engaged_by_name == "lee"
        assert audit_after("emergency_order.attached")["episode"] == episode.pk
        assert not AuditEntry.objects.filter(action="switch.extended").exists()
        assert not Approval.objects.exists()

    def test_the_episode_lasts_as_long_as_the_order(self):
        engage(person("operator", "lee").as_actor(), expires_in="1h")
        order = store()

        reconcile()

        assert Episode.objects.get().expires_at == order.at + DAY
        assert audit_after("switch.extended")["emergency"]["id"] == str(order.pk)

    def test_the_episode_is_held_at_its_end_so_that_only_a_person_releases_it(self):
        lee = person("operator", "lee").as_actor()
        ends = engage(lee, "feature:beta", expires_in="7d", on_expiry="release").episode.expires_at
        store("feature:beta")

        reconcile()

        episode = Episode.objects.get()
        assert (episode.on_expiry, episode.expires_at) == ("hold", ends)
        assert Switch.objects.get().version == version()

    def test_an_overdue_episode_is_extended(self):
        lee = person("operator", "lee").as_actor()
        episode = engage(lee, expires_in="1h").episode
        Episode.objects.update(
            engaged_at=db_now() - 2 * HOUR, expires_at=db_now() - HOUR, overdue_at=db_now()
        )
        store()

        reconcile()

        episode.refresh_from_db()
        assert not episode.overdue

    def test_an_order_that_has_expired_leaves_an_overdue_episode_overdue(self):
        engage(person("operator", "lee").as_actor(), expires_in="1h")
        Episode.objects.update(
            engaged_at=db_now() - 9 * HOUR, expires_at=db_now() - 8 * HOUR, overdue_at=db_now()
        )
        store(at=db_now() - 3 * HOUR, expires_in="1h")

        reconcile()

        assert Episode.objects.get().overdue

    def test_of_two_orders_of_one_switch_the_later_is_attached(self):
        later = store_by(person_with_code("lee"), at=db_now() - timedelta(seconds=10))
        earlier = store(at=db_now() - timedelta(seconds=20))

        assert reconcile() == 2

        assert reload(earlier).state == "reconciled"
        assert reload(later).state == "attached"
        assert reload(later).episode == reload(earlier).episode
        assert Episode.objects.get().engaged_by_name == "kim"


class TestRamps:
    def test_a_ramp_is_aborted_and_says_by_whom_and_why(self):
        lee = person("operator", "lee").as_actor()
        episode = engage(lee, "feature:beta").episode
        release(lee, "feature:beta")
        order = store("feature:beta")

        reconcile()

        ramp = Ramp.objects.select_related("job").get()
        assert ramp.job.state == "cancelled"
        assert ramp.job.outcome == f"user:kim engaged the switch again: {REASON}"
        assert Episode.objects.get() == episode == reload(order).episode
        assert Switch.objects.get().state == "engaged"
        assert reload(order).closed_version == version()
        review = Approval.objects.get(kind="break_glass_review")
        assert review.requested_by == "user:kim"

    def test_an_order_that_expired_before_the_episode_began_still_engages(self):
        lee = person("operator", "lee").as_actor()
        engage(lee, "feature:beta")
        release(lee, "feature:beta")
        store("feature:beta", at=db_now() - 9 * HOUR, expires_in="1h")

        reconcile()

        assert Switch.objects.get().state == "engaged"

    def test_the_expiry_is_not_shortened_for_an_earlier_override(self):
        add_rule("one feature", "at_most", ["feature:*"], n=1)
        lee = person("operator", "lee").as_actor()
        engage(lee, "feature:other")
        override = {"rule": "one feature", "reason": "both features charge cards twice"}
        engage(lee, "feature:beta", break_glass=override)
        release(lee, "feature:beta")
        order = store("feature:beta")

        reconcile()

        episode = Episode.objects.get(switch="feature:beta")
        assert episode.expires_at == order.at + DAY
        reviews = Approval.objects.filter(kind="break_glass_review", requested_by="user:kim")
        assert [review.diff["rules"] for review in reviews] == [["one feature"]]


def add_rule(name, kind, switches, **fields):
    Rule.objects.create(
        name=name,
        kind=kind,
        switches=switches,
        created_at=db_now(),
        created_by="t",
        changed_at=db_now(),
        **fields,
    )
