"""Services of switches: what each writes and refuses."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from controlplane.accounts.models.people import User
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from switches import services
from switches.dry_run import discard_writes
from switches.models import Episode, Publication, Switch

REASON = "결제 이중 청구 의심, INC-4411"
BACK = "root cause fixed in release 41, verified on staging"


def person(name, role="operator"):
    return User.objects.create_user(name, "a long password", role=role).as_actor()


def engage(actor, scope="segment", key="finance", **more):
    arguments = {"reason": REASON, "expires_in": "24h", "now": db_now(), **more}
    return services.engage(scope=scope, key=key, actor=actor, **arguments)


def release(actor, scope="segment", key="finance", **more):
    arguments = {"justification": BACK, "now": db_now(), **more}
    return services.release(scope=scope, key=key, actor=actor, **arguments)


def version():
    return Publication.objects.get().version


@pytest.mark.django_db
class TestEngage:
    def test_writes_state_episode_audit_and_version_together(self):
        olga, now = person("olga"), db_now()

        done = engage(olga, now=now)

        switch = Switch.objects.get(pk="segment:finance")
        assert (switch.state, switch.version, version()) == ("engaged", 1, 1)
        assert done.episode.expires_at == now + timedelta(hours=24)
        assert done.episode.on_expiry == "hold"
        entry = AuditEntry.objects.get()
        assert (entry.action, entry.target, entry.actor_name) == (
            "switch.engaged",
            "segment:finance",
            "olga",
        )
        assert '"state":"released"' in entry.before
        assert '"state":"engaged"' in entry.after

    def test_twice_is_a_conflict_that_tells_who_was_first(self):
        engage(person("olga"))

        with pytest.raises(Conflict) as refused:
            engage(person("piotr"), reason="provider outage, latency p95 9s")

        assert refused.value.extra["episode"]["engaged_by"] == "user:olga"
        assert version() == 1

    def test_a_rehearsal_writes_nothing(self):
        olga = person("olga")

        with discard_writes():
            done = engage(olga)

        assert done.episode.reason == REASON
        assert not Switch.objects.exists()
        assert not AuditEntry.objects.exists()
        assert version() == 0

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"reason": ""}, "reason"),
            ({"reason": "test test test"}, "reason"),
            ({"reason": "긴급 정지합니다"}, "reason"),
            ({"expires_in": None}, "expires_in"),
            ({"expires_in": "31d"}, "expires_in"),
            ({"expires_in": "-1h"}, "expires_in"),
            ({"expires_in": None, "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
            ({"on_expiry": "explode"}, "on_expiry"),
            ({"scope": "galaxy"}, "scope"),
            ({"key": "a b"}, "key"),
            ({"key": ""}, "key"),
            ({"key": "k" * 121}, "key"),
            ({"scope": "global", "key": "everything"}, "key"),
            ({"scope": "global", "key": "all", "on_expiry": "release"}, "on_expiry"),
            ({"evidence": {"log": "x" * 40_000}}, "evidence"),
        ],
    )
    def test_bad_input_names_the_field_and_writes_nothing(self, changes, field):
        olga = person("olga")

        with pytest.raises(InvalidInput) as refused:
            engage(olga, **changes)

        assert field in refused.value.errors
        assert not Switch.objects.exists()
        assert version() == 0

    def test_needs_the_scope(self):
        with pytest.raises(Forbidden):
            engage(person("vera", "viewer"))

    def test_permanent_engages_for_a_day_and_asks(self):
        olga, now = person("olga"), db_now()

        done = engage(olga, expires_in="permanent", now=now)

        assert done.approval.state == "pending"
        assert done.episode.expires_at == now + timedelta(hours=24)
        assert not done.episode.permanent

    def test_permanent_once_approved_has_no_expiry(self):
        done = engage(person("olga"), expires_in="permanent")

        approvals.approve(
            approval_id=done.approval.pk, comment="", actor=person("ada", "approver"), now=db_now()
        )

        episode = Episode.objects.get()
        assert episode.permanent
        assert episode.expires_at is None
        assert version() == 2
        assert services.expire_due(db_now() + timedelta(days=400)) == 0


@pytest.mark.django_db
class TestRelease:
    def test_at_once_closes_the_episode_and_publishes(self):
        olga = person("olga", "approver")
        engage(olga, "feature")

        release(olga, "feature", mode="immediate")

        episode = Episode.objects.get()
        assert (episode.ended_how, episode.ended_by, episode.justification) == (
            "released",
            "user:olga",
            BACK,
        )
        assert Switch.objects.get().state == "released"
        assert version() == 2

    def test_of_a_released_switch_tells_what_happened(self):
        olga = person("olga", "approver")
        engage(olga, "feature")
        release(olga, "feature", mode="immediate")

        with pytest.raises(Conflict, match=r"already released since .* by user:olga"):
            release(olga, "feature")
        with pytest.raises(Conflict, match="already released"):
            release(olga, key="never-seen")

    @pytest.mark.parametrize(
        ("changes", "field"),
        [({"justification": "  "}, "justification"), ({"mode": "magic"}, "mode")],
    )
    def test_bad_input_names_the_field(self, changes, field):
        olga = person("olga")
        engage(olga)

        with pytest.raises(InvalidInput) as refused:
            release(olga, **changes)

        assert field in refused.value.errors
        assert version() == 1

    def test_global_waits_for_a_second_person(self):
        olga, ada = person("olga", "approver"), person("ada", "approver")
        late = person("piotr", "approver")
        engage(olga, "global", "all")

        requested = release(olga, "global", "all", mode="immediate")
        assert requested.approval.state == "pending"
        assert Switch.objects.get().state == "engaged"
        with pytest.raises(Forbidden, match="second person"):
            approvals.approve(
                approval_id=requested.approval.pk, comment="", actor=olga, now=db_now()
            )
        approvals.approve(
            approval_id=requested.approval.pk, comment="seen", actor=ada, now=db_now()
        )

        assert Switch.objects.get().state == "released"
        assert Approval.objects.get().state == "approved"
        again = approvals.approve(
            approval_id=requested.approval.pk, comment="twice", actor=ada, now=db_now()
        )
        assert (again.state, again.comment) == ("approved", "seen")
        with pytest.raises(Conflict, match="already approved by user:ada"):
            approvals.approve(
                approval_id=requested.approval.pk, comment="", actor=late, now=db_now()
            )
        assert version() == 2

    def test_asking_twice_is_one_request(self):
        olga = person("olga")
        engage(olga, "global", "all")

        first, second = release(olga, "global", "all"), release(olga, "global", "all")

        assert first.approval.pk == second.approval.pk

    @pytest.mark.parametrize("role", ["viewer", "operator"])
    def test_only_approvers_approve(self, role):
        engage(person("olga"), "global", "all")
        requested = release(person("piotr"), "global", "all")

        with pytest.raises(Forbidden):
            approvals.approve(
                approval_id=requested.approval.pk, comment="", actor=person("x", role), now=db_now()
            )

    def test_a_token_never_approves_and_its_owner_can_not_approve_for_it(self):
        ada = person("ada", "approver")
        made, _ = tokens.create_token(
            name="deploy",
            owner=User.objects.get(pk=ada.user_id),
            scopes=["switches:write"],
            actor=ada,
            now=db_now(),
        )
        token = Actor("token", "deploy", ada.user_id, made.pk, ada.role, ada.scopes)
        engage(person("olga"), "global", "all")
        requested = release(token, "global", "all")

        for actor in (token, ada):
            with pytest.raises(Forbidden):
                approvals.approve(
                    approval_id=requested.approval.pk, comment="", actor=actor, now=db_now()
                )

    def test_an_approval_of_an_earlier_episode_does_nothing(self):
        olga, ada = person("olga"), person("ada", "approver")
        engage(olga, "global", "all")
        requested = release(olga, "global", "all")
        release(system_actor("shell:root"), "global", "all")
        engage(olga, "global", "all")

        with pytest.raises(Conflict, match="void"):
            approvals.approve(
                approval_id=requested.approval.pk, comment="", actor=ada, now=db_now()
            )

        assert Switch.objects.get().state == "engaged"

    def test_an_expired_request_can_not_be_approved(self):
        olga, ada = person("olga"), person("ada", "approver")
        engage(olga, "global", "all")
        requested = release(olga, "global", "all")
        later = db_now() + timedelta(hours=25)

        with pytest.raises(Conflict, match="expired"):
            approvals.approve(approval_id=requested.approval.pk, comment="", actor=ada, now=later)
        assert approvals.expire_due_requests(later) == 1
        assert Approval.objects.get().state == "expired"


@pytest.mark.django_db
class TestUndo:
    def test_within_thirty_seconds_by_the_same_actor(self):
        olga, now = person("olga"), db_now()
        engage(olga, now=now)

        services.undo(scope="segment", key="finance", actor=olga, now=now + timedelta(seconds=30))

        assert Episode.objects.get().ended_how == "undone"
        assert AuditEntry.objects.filter(action="switch.undone").count() == 1
        assert version() == 2

    def test_refused_late_by_others_or_after_a_change(self):
        olga, piotr, now = person("olga"), person("piotr"), db_now()
        engage(olga, now=now)

        with pytest.raises(Conflict, match="30 seconds"):
            services.undo(
                scope="segment", key="finance", actor=olga, now=now + timedelta(seconds=31)
            )
        with pytest.raises(Conflict, match="the person who engaged"):
            services.undo(scope="segment", key="finance", actor=piotr, now=now)
        services.extend(
            scope="segment", key="finance", expires_in="7d", reason=REASON, actor=olga, now=now
        )
        with pytest.raises(Conflict, match="changed since"):
            services.undo(scope="segment", key="finance", actor=olga, now=now)


@pytest.mark.django_db
class TestExtend:
    def test_moves_the_expiry_and_clears_overdue(self):
        olga, now = person("olga"), db_now()
        engage(olga, expires_in="1s", now=now)
        services.expire_due(now + timedelta(seconds=2))
        later = now + timedelta(seconds=3)

        done = services.extend(
            scope="segment", key="finance", expires_in="2h", reason=REASON, actor=olga, now=later
        )

        assert done.episode.expires_at == later + timedelta(hours=2)
        assert not done.episode.overdue

    @pytest.mark.parametrize("expires_in", ["1h", "31d", "", "soon"])
    def test_refuses_an_earlier_or_absurd_expiry(self, expires_in):
        olga = person("olga")
        engage(olga)

        with pytest.raises(InvalidInput) as refused:
            services.extend(
                scope="segment",
                key="finance",
                expires_in=expires_in,
                reason=REASON,
                actor=olga,
                now=db_now(),
            )

        assert "expires_in" in refused.value.errors

    def test_to_permanent_asks_with_the_reason_given_now(self):
        olga = person("olga")
        engage(olga)

        done = services.extend(
            scope="segment",
            key="finance",
            expires_in="permanent",
            reason="vendor contract ended for good, INC-77",
            actor=olga,
            now=db_now(),
        )

        assert done.approval.reason == "vendor contract ended for good, INC-77"

    def test_of_a_released_switch_is_a_conflict(self):
        with pytest.raises(Conflict, match="not engaged"):
            services.extend(
                scope="segment",
                key="finance",
                expires_in="2d",
                reason=REASON,
                actor=person("olga"),
                now=db_now(),
            )


@pytest.mark.django_db
class TestExpiry:
    def test_release_policy_releases_once(self):
        now = db_now()
        engage(person("olga"), "feature", "chat", expires_in="1h", on_expiry="release", now=now)

        assert services.expire_due(now + timedelta(minutes=59)) == 0
        assert services.expire_due(now + timedelta(minutes=60)) == 1
        assert services.expire_due(now + timedelta(minutes=61)) == 0

        assert Episode.objects.get().ended_how == "expired"
        assert AuditEntry.objects.get(action="switch.released").actor_type == "system"

    def test_hold_policy_stays_engaged_and_is_overdue_once(self):
        now = db_now()
        engage(person("olga"), expires_in="1h", now=now)

        assert services.expire_due(now + timedelta(hours=2)) == 1
        assert services.expire_due(now + timedelta(hours=3)) == 0

        episode = Episode.objects.get()
        assert episode.overdue
        assert episode.state == "engaged"
        assert version() == 1


@pytest.mark.django_db
def test_acknowledge_publishes_nothing_and_is_audited():
    olga = person("olga")
    engage(olga)

    services.acknowledge(scope="segment", key="finance", comment="on it", actor=olga, now=db_now())

    assert version() == 1
    assert Episode.objects.get().acknowledged_by == "user:olga"
    assert AuditEntry.objects.filter(action="episode.acknowledged", reason="on it").exists()


@pytest.mark.django_db
def test_describe_registers_and_audits_only_a_real_change():
    olga, now = person("olga"), db_now()
    changes = {"owner": "payments", "runbook_url": "https://example.org/r"}

    for _ in range(2):
        services.describe(scope="feature", key="chat", changes=changes, actor=olga, now=now)

    assert Switch.objects.get().owner == "payments"
    assert AuditEntry.objects.filter(action="registration.changed").count() == 1
    assert version() == 0
    services.describe(scope="feature", key="ghost", changes={"owner": ""}, actor=olga, now=now)
    assert not Switch.objects.filter(key="ghost").exists()
    for wrong in ({"runbook_url": "javascript:alert(1)"}, {"owner": "x" * 121}, {"state": "y"}):
        with pytest.raises(InvalidInput):
            services.describe(scope="feature", key="chat", changes=wrong, actor=olga, now=now)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        {"allow_percent": 100.01},
        {"allow_percent": -1},
        {"expires_at": None},
        {"permanent": True},
        {"on_expiry": "explode"},
        {"ended_how": "released"},
    ],
)
def test_the_database_refuses_what_no_episode_can_be(wrong):
    engage(person("olga"))

    with pytest.raises(IntegrityError), transaction.atomic():
        Episode.objects.update(**wrong)


@pytest.mark.django_db
def test_the_database_refuses_a_second_open_episode():
    engage(person("olga"))
    twin = Episode.objects.get()
    twin.pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save()


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_one_wins_and_the_other_learns_what_happened():
    actors = [person("olga"), person("piotr")]
    barrier, outcomes = threading.Barrier(2), []

    def attempt(actor):
        barrier.wait()
        try:
            with transaction.atomic():
                engage(actor)
            outcomes.append("won")
        except Conflict as conflict:
            outcomes.append(conflict.extra["episode"]["engaged_by"])
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=[actor]) for actor in actors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    winner = f"user:{Episode.objects.get().engaged_by_name}"
    assert sorted(outcomes) == sorted(["won", winner])
    assert version() == 1


@pytest.mark.django_db(transaction=True)
def test_parallel_changes_number_every_version_once_and_in_order():
    actor = person("olga", "approver")

    def churn(key):
        for _ in range(5):
            engage(actor, "feature", key)
            release(actor, "feature", key, mode="immediate")
        connection.close()

    threads = [threading.Thread(target=churn, args=[f"f{number}"]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    rows = AuditEntry.objects.filter(action__startswith="switch.").order_by("id")
    versions = [int(row.after.rsplit('"version":', 1)[1].rstrip("}")) for row in rows]
    assert versions == list(range(1, 61))
    assert version() == 60
    assert audit.verify().intact
