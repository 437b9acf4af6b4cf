"""Overdue episodes: held, announced and escalated until acknowledged or decided."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from controlplane.core.actors import system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import at_once, person
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import Thread
from switches import services
from switches.models import Episode, Publication, Rule
from switches.tests import messages
from switches.tests.bulk_engagements import engage_alike

KIM = system_actor("test")
REASON = "card payments charged twice"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def _outlet(settings):
    messages.configure(settings)


def engage(switch="segment:finance", **more):
    scope, _, key = switch.partition(":")
    arguments = {"reason": REASON, "expires_in": "2h", "actor": KIM, **more}
    return services.engage(scope=scope, key=key, **arguments).episode


def late(switch="segment:finance", **more):
    """Create a switch that is overdue from now; return it and the time."""
    now = db_now()
    episode = engage(switch, now=now - 2 * HOUR, **more)
    services.expire_due(now)
    episode.refresh_from_db()
    return episode, now


def escalation(episode):
    return Escalation.objects.get(subject=f"episode:{episode.pk}", closed_at=None)


def is_quiet(episode):
    return not Escalation.objects.filter(subject=f"episode:{episode.pk}", closed_at=None).exists()


@pytest.mark.django_db
class TestOverdue:
    @pytest.mark.parametrize(
        ("switch", "severity"),
        [
            ("global:all", "critical"),
            ("segment:finance", "critical"),
            ("feature:chat", "warning"),
            ("experiment:colour", "warning"),
        ],
    )
    def test_is_told_and_escalates_as_its_scope_deserves(self, switch, severity):
        episode, _ = late(switch, on_expiry="hold")

        assert episode.overdue
        (message,) = messages.find("episode.overdue")
        assert (message.severity, message.subject) == (severity, f"episode:{episode.pk}")
        opened = escalation(episode)
        assert (opened.event, opened.severity) == ("episode.overdue", severity)
        assert opened.scope == switch.partition(":")[0]
        assert opened.notified_at is not None
        assert opened.facts["path"] == f"/switches/{switch.replace(':', '/')}/"

    def test_ramp_policy_begins_a_ramp_and_calls_nobody(self):
        episode, _ = late("feature:chat", on_expiry="ramp")

        assert (episode.overdue, episode.state, episode.allow_percent) == (False, "ramping", 5)
        assert not messages.find("episode.overdue")
        (message,) = messages.find("ramp.started")
        assert message.subject == f"episode:{episode.pk}"

    def test_who_acknowledged_in_time_is_called_all_the_same(self):
        now = db_now()
        episode = engage(now=now - 2 * HOUR)
        services.acknowledge(scope="segment", key="finance", actor=KIM, now=now - HOUR)

        services.expire_due(now)

        episode.refresh_from_db()
        assert escalation(episode).acknowledged_at is None
        assert episode.acknowledged_at is None

    def test_acknowledged_one_is_quiet_for_a_day(self):
        episode, now = late()

        services.acknowledge(scope="segment", key="finance", actor=KIM, now=now)

        assert escalation(episode).acknowledged_by == KIM.label
        assert escalation(episode).next_at == now + DAY

    def test_extension_counts_from_now_and_ends_the_escalation(self):
        episode, now = late()
        after = now + 3 * HOUR

        extended = services.extend(
            scope="segment", key="finance", expires_in="30d", reason=REASON, actor=KIM, now=after
        ).episode

        assert extended.expires_at == after + timedelta(days=30)
        assert not extended.overdue
        assert is_quiet(episode)

    def test_release_ends_the_escalation(self):
        episode, now = late()

        services.release(scope="segment", key="finance", justification="x", actor=KIM, now=now)

        assert is_quiet(episode)

    def test_permanent_once_approved_ends_the_escalation(self):
        episode, now = late(actor=person("operator", "kim").as_actor())
        approval = services.extend(
            scope="segment",
            key="finance",
            expires_in="permanent",
            reason=REASON,
            actor=person("operator", "olga").as_actor(),
            now=now,
        ).approval
        assert not is_quiet(episode)
        services.acknowledge(scope="segment", key="finance", actor=KIM, now=now)

        approvals.approve(
            approval_id=approval.pk, comment="", actor=person("approver", "ada").as_actor(), now=now
        )

        assert is_quiet(episode)
        episode.refresh_from_db()
        assert episode.reconfirm_due_at == now + timedelta(days=7)
        assert (episode.acknowledged_at, episode.acknowledged_by) == (None, "")

    def test_second_time_overdue_escalates_anew(self):
        episode, now = late()
        services.acknowledge(scope="segment", key="finance", actor=KIM, now=now)
        services.extend(
            scope="segment", key="finance", expires_in="1h", reason=REASON, actor=KIM, now=now
        )

        services.expire_due(now + HOUR)

        assert escalation(episode).acknowledged_at is None
        assert escalation(episode).opened_at == now + HOUR
        assert len(messages.find("episode.overdue")) == 2


@pytest.mark.django_db
class TestReleasePolicy:
    def test_rule_in_the_way_holds_it_and_the_message_names_the_rule(self):
        now = db_now()
        engage("feature:a", on_expiry="release", now=now - 2 * HOUR)
        Rule.objects.create(
            name="one checkout stays off",
            kind="at_least_one",
            switches=["feature:a", "feature:b"],
            created_at=now,
            created_by="user:root",
            changed_at=now,
        )

        services.expire_due(now)

        episode = Episode.objects.get()
        assert episode.overdue
        text = escalation(episode).facts["said"]
        assert "one checkout stays off" in text
        assert "feature:b" in text
        assert messages.find("episode.overdue")[0].payload["said"] == text
        assert Publication.objects.get().version == 1

    def test_switch_that_became_protected_is_held(self):
        now = db_now()
        engage("feature:a", on_expiry="release", now=now - 2 * HOUR)
        Rule.objects.create(
            name="payments are protected",
            kind="protected",
            switches=["feature:*"],
            created_at=now,
            created_by="user:root",
            changed_at=now,
        )

        services.expire_due(now)

        assert Episode.objects.get().overdue
        assert "protected" in messages.find("episode.overdue")[0].payload["said"]

    def test_nothing_in_the_way_releases_it_and_nobody_is_called(self):
        episode, _ = late("feature:a", on_expiry="release")

        assert episode.ended_how == "expired"
        assert is_quiet(episode)
        assert messages.events() == ["switch.engaged", "switch.released"]


@pytest.mark.django_db
class TestMany:
    @pytest.mark.slow
    def test_300_in_one_second_are_one_message_and_each_escalates(self):
        now = db_now()
        held = engage("segment:s0", now=now - 2 * HOUR)
        ended = engage("feature:f0", on_expiry="release", now=now - 2 * HOUR)
        engage_alike(held, [f"segment:s{number}" for number in range(1, 280)])
        engage_alike(ended, [f"feature:f{number}" for number in range(1, 20)])

        assert services.expire_due(now) == 300

        assert Episode.objects.filter(overdue_at=now, ended_at=None).count() == 280
        assert Escalation.objects.filter(closed_at=None).count() == 280
        (digest,) = messages.find("episodes.expired")
        assert digest.payload["count"] == 300
        assert digest.payload["held"].endswith("and 270 more")
        assert digest.payload["released"].startswith("feature:f0, feature:f1")
        assert digest.severity == "critical"
        assert not messages.find("episode.overdue")
        assert AuditEntry.objects.filter(action="episode.overdue").count() == 280

    def test_turn_that_follows_at_once_does_not_list_them_again(self):
        now = db_now()
        for number in range(8):
            engage(f"segment:s{number}", now=now - 2 * HOUR)
        services.expire_due(now)
        Episode.objects.filter(switch__key__gte="s2").update(overdue_at=None)

        services.expire_due(now + timedelta(seconds=1))

        assert len(messages.find("episodes.expired")) == 1
        assert Episode.objects.filter(overdue_at=None).count() == 0

    def test_threads_of_the_episodes_go_on_quietly(self):
        now = db_now()
        for number in range(5):
            episode = engage(f"segment:s{number}", now=now - 2 * HOUR)
            Thread.objects.create(
                destination="slack",
                subject=f"episode:{episode.pk}",
                channel="C0OPS",
                ts=f"1.{number}",
                created_at=now,
            )

        services.expire_due(now)

        assert len(messages.find("episode.overdue")) == 5
        assert len(messages.find("episodes.expired")) == 1


def in_force(kind, *patterns, name, at):
    return Rule.objects.create(
        name=name,
        kind=kind,
        switches=list(patterns),
        created_at=at,
        created_by="user:root",
        changed_at=at,
    )


@pytest.mark.django_db
class TestManyUnderARule:
    def test_digest_says_what_becomes_of_each(self):
        now = db_now()
        for number in range(5):
            engage(f"feature:f{number}", on_expiry="release", now=now - 2 * HOUR)
        in_force("at_least_one", "feature:*", name="one stays off", at=now)

        services.expire_due(now)

        (held,) = Episode.objects.filter(overdue_at=now, ended_at=None)
        (digest,) = messages.find("episodes.expired")
        assert digest.payload["held"] == held.switch_id
        assert digest.payload["released"] == ", ".join(f"feature:f{number}" for number in range(4))
        assert digest.severity == "warning"
        assert not messages.find("episode.overdue")

    def test_one_that_turns_out_otherwise_than_told_is_told_of_by_itself(self):
        now = db_now()
        for number in range(5):
            engage(f"feature:f{number}", on_expiry="release", now=now - 2 * HOUR)
        episode = Episode.objects.get(switch_id="feature:f3")
        with _a_rule_that_comes_in_between():
            services.expire_due(now)

        episode.refresh_from_db()
        (message,) = messages.find("episode.overdue")
        assert episode.overdue
        assert (message.payload["switch"], message.severity) == ("feature:f3", "warning")
        assert len(messages.find("episodes.expired")) == 1

    @pytest.mark.parametrize("left", [1, 3])
    def test_few_that_a_turn_left_undone_are_not_told_again(self, left):
        now = db_now()
        for number in range(6):
            engage(f"segment:s{number}", now=now - 2 * HOUR)
        services.expire_due(now)
        pks = Episode.objects.order_by("-pk").values_list("pk", flat=True)[:left]
        Episode.objects.filter(pk__in=list(pks)).update(overdue_at=None)

        services.expire_due(now + timedelta(seconds=1))

        assert len(messages.find("episodes.expired")) == 1
        assert not messages.find("episode.overdue")
        assert not Episode.objects.filter(overdue_at=None).exists()


@contextmanager
def _a_rule_that_comes_in_between():
    """Context manager: a database trigger protects the other switch as soon as one is released."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            create function meanwhile() returns trigger language plpgsql as $$ begin
              insert into switches_rule (name, kind, switches, created_at, created_by, changed_at)
              values ('meanwhile', 'protected', '["feature:f3"]', now(), 'user:root', now())
              on conflict do nothing;
              return new;
            end $$;
            create trigger meanwhile after update of ended_at on switches_episode
            for each row execute function meanwhile();
            """
        )
        yield
        cursor.execute("drop trigger meanwhile on switches_episode; drop function meanwhile()")


@pytest.mark.django_db
def test_control_plane_that_was_down_for_three_days_does_each_thing_once():
    now = db_now()
    held = engage(now=now)
    gone = engage("feature:chat", on_expiry="release", now=now)
    back = now + timedelta(days=3)

    assert services.remind_due(back) == 0
    assert [services.expire_due(back + timedelta(seconds=s)) for s in range(3)] == [2, 0, 0]

    held.refresh_from_db()
    gone.refresh_from_db()
    assert held.overdue_at == back
    assert gone.ended_how == "expired"
    assert Escalation.objects.count() == 1
    assert messages.events(since=back) == ["episode.overdue", "switch.released"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("switches", [2, 7])
def test_two_turns_at_once_deal_with_each_once(switches):
    now = db_now()
    for number in range(switches):
        engage(f"segment:s{number}", now=now - 2 * HOUR)

    dealt = at_once(*[lambda: services.expire_due(now)] * 3)

    assert sum(dealt) == switches
    assert AuditEntry.objects.filter(action="episode.overdue").count() == switches
    assert Escalation.objects.count() == switches
    if switches > 3:
        covered = [end for one in messages.find("episodes.expired") for end in one.payload["ends"]]
        assert len(covered) == len(set(covered)) == switches
