"""Permanent episodes: re-confirmed weekly by a person, or escalated."""

from datetime import timedelta

import pytest

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.escalation import Escalation
from switches import services
from switches.models import Episode, Publication
from switches.tests import messages

DAY, WEEK, SECOND = timedelta(days=1), timedelta(days=7), timedelta(seconds=1)
REASON = "vendor contract ended for good, INC-77"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _outlet(settings):
    messages.configure(settings)


def permanent(user, key="finance", now=None):
    """Create a segment that two people made permanent."""
    now = now or db_now()
    approval = services.engage(
        scope="segment",
        key=key,
        reason=REASON,
        expires_in="permanent",
        actor=user.as_actor(),
        now=now,
    ).approval
    approvals.approve(
        approval_id=approval.pk,
        comment="",
        actor=person("approver", f"ada-{key}").as_actor(),
        now=now,
    )
    return Episode.objects.get(switch=f"segment:{key}")


def reconfirm(user, now, **more):
    arguments = {"scope": "segment", "key": "finance", "reason": REASON, **more}
    return services.reconfirm(actor=user.as_actor(), now=now, **arguments).episode


class TestService:
    def test_moves_the_week_from_now_and_publishes_nothing(self, kim):
        episode = permanent(kim)
        version, now = Publication.objects.get().version, episode.reconfirm_due_at - DAY

        done = reconfirm(kim, now)

        assert done.reconfirm_due_at == now + WEEK
        assert (done.reconfirmed_at, done.reconfirmed_by) == (now, "user:kim")
        assert Publication.objects.get().version == version
        entry = AuditEntry.objects.get(action="episode.reconfirmed")
        assert entry.reason == REASON
        assert entry.before != entry.after
        assert len(messages.find("episode.reconfirmed")) == 1

    def test_token_never_may(self, kim):
        permanent(kim)
        own = kim.as_actor()
        token = Actor("token", "deploy", own.user_id, 1, own.role, own.scopes)

        with pytest.raises(Forbidden, match="signed-in person"):
            services.reconfirm(
                scope="segment", key="finance", reason=REASON, actor=token, now=db_now()
            )

    def test_mapped_person_on_slack_may(self, kim):
        permanent(kim)
        own = kim.as_actor()
        slack = Actor("slack", "kim", own.user_id, None, own.role, own.scopes)

        done = services.reconfirm(
            scope="segment", key="finance", reason=REASON, actor=slack, now=db_now()
        )

        assert done.episode.reconfirmed_by == "slack:kim"

    def test_viewer_may_not(self, kim):
        permanent(kim)

        with pytest.raises(Forbidden):
            reconfirm(person("viewer", "vera"), db_now())

    def test_one_with_an_expiry_is_extended_instead(self, kim):
        services.engage(
            scope="segment",
            key="finance",
            reason=REASON,
            expires_in="1h",
            actor=kim.as_actor(),
            now=db_now(),
        )

        with pytest.raises(Conflict, match="Extend it instead"):
            reconfirm(kim, db_now())

    def test_released_one_is_a_conflict(self, kim):
        with pytest.raises(Conflict, match="nothing to re-confirm"):
            reconfirm(kim, db_now())

    @pytest.mark.parametrize("reason", ["", "test test", "ok"])
    def test_vague_reason_is_refused(self, kim, reason):
        permanent(kim)

        with pytest.raises(InvalidInput) as refused:
            reconfirm(kim, db_now(), reason=reason)

        assert "reason" in refused.value.errors


class TestFallingDue:
    def test_reminded_a_day_before_then_people_are_called_once(self, kim):
        episode = permanent(kim)
        due = episode.reconfirm_due_at

        assert services.remind_due(due - DAY - SECOND) == 0
        assert [services.remind_due(due - DAY), services.remind_due(due - SECOND)] == [1, 0]
        assert services.call_for_reconfirmation(due - SECOND) == 0
        turns = [services.call_for_reconfirmation(due + n * SECOND) for n in range(3)]

        assert turns == [1, 0, 0]
        assert len(messages.find("episode.reconfirm_soon")) == 1
        (message,) = messages.find("episode.reconfirm_due")
        assert message.payload["reconfirm_due_at"]
        opened = Escalation.objects.get()
        assert (opened.subject, opened.event) == (f"episode:{episode.pk}", "episode.reconfirm_due")
        assert opened.severity == "warning"

    def test_it_stays_engaged_whatever_happens(self, kim):
        episode = permanent(kim)
        later = episode.reconfirm_due_at + 60 * DAY

        services.call_for_reconfirmation(later)
        services.expire_due(later)

        episode.refresh_from_db()
        assert (episode.ended_at, episode.overdue, episode.permanent) == (None, False, True)

    def test_reconfirming_ends_the_calls_and_arms_the_next_week(self, kim):
        episode = permanent(kim)
        due = episode.reconfirm_due_at
        services.remind_due(due - DAY)
        services.call_for_reconfirmation(due)

        again = reconfirm(kim, due + DAY).reconfirm_due_at

        assert again == due + DAY + WEEK
        assert not Escalation.objects.filter(closed_at=None).exists()
        assert services.call_for_reconfirmation(due + 2 * DAY) == 0
        assert services.remind_due(again - DAY) == 1
        assert services.call_for_reconfirmation(again) == 1
        assert Escalation.objects.filter(closed_at=None).count() == 1

    def test_acknowledging_is_no_reconfirmation(self, kim):
        episode = permanent(kim)
        due = episode.reconfirm_due_at
        services.call_for_reconfirmation(due)

        services.acknowledge(scope="segment", key="finance", actor=kim.as_actor(), now=due)

        episode.refresh_from_db()
        assert episode.reconfirm_due_at == due
        assert Escalation.objects.get(closed_at=None).next_at == due + DAY
        assert services.call_for_reconfirmation(due + DAY) == 0

    def test_release_ends_the_calls(self, kim):
        episode = permanent(kim)
        services.call_for_reconfirmation(episode.reconfirm_due_at)

        services.release(
            scope="segment",
            key="finance",
            justification="vendor is back",
            actor=kim.as_actor(),
            now=db_now(),
        )

        assert not Escalation.objects.filter(closed_at=None).exists()

    def test_one_from_before_weeks_were_counted_begins_its_first_week(self, kim):
        episode, now = permanent(kim), db_now()
        Episode.objects.update(reconfirm_due_at=None)

        assert services.call_for_reconfirmation(now) == 0

        episode.refresh_from_db()
        assert episode.reconfirm_due_at == now + WEEK
        services.call_for_reconfirmation(now + DAY)
        episode.refresh_from_db()
        assert episode.reconfirm_due_at == now + WEEK

    def test_many_at_once_are_one_message(self, kim):
        now = db_now()
        due = [permanent(kim, f"s{number}", now).reconfirm_due_at for number in range(5)]

        assert services.call_for_reconfirmation(max(due)) == 5

        (digest,) = messages.find("episodes.reconfirm_due")
        assert digest.payload["permanent"] == "segment:s0, segment:s1, segment:s2, " + (
            "segment:s3, segment:s4"
        )
        assert not messages.find("episode.reconfirm_due")
        assert Escalation.objects.filter(closed_at=None).count() == 5
