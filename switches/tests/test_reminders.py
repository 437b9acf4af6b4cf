"""Reminders a day and an hour before an expiry, once each."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import at_once
from controlplane.core.outbox.models import OutboxMessage
from switches import reminders, services
from switches.models import Episode
from switches.reminders import DAY, HOUR, due_reminder
from switches.tests import messages
from switches.tests.bulk_engagements import engage_alike

NOW = datetime(2026, 11, 21, 2, 10, tzinfo=UTC)
KIM = system_actor("test")
REASON = "card payments charged twice"
SECOND = timedelta(seconds=1)


def engage(switch="segment:finance", **more):
    scope, _, key = switch.partition(":")
    arguments = {"reason": REASON, "expires_in": "3d", "now": NOW, **more}
    return services.engage(scope=scope, key=key, actor=KIM, **arguments).episode


def extend(key="finance", **more):
    arguments = {"expires_in": "5d", "reason": REASON, "now": NOW, **more}
    return services.extend(scope="segment", key=key, actor=KIM, **arguments).episode


@pytest.fixture(autouse=True)
def _outlet(settings):
    messages.configure(settings)


def ending(left, *, day=None, hour=None, permanent=False):
    end = {"reconfirm_due_at" if permanent else "expires_at": NOW + left}
    return Episode(permanent=permanent, day_reminder_for=day, hour_reminder_for=hour, **end)


class TestOwed:
    @pytest.mark.parametrize(
        ("left", "notice"),
        [
            (DAY + SECOND, None),
            (DAY, DAY),
            (HOUR + SECOND, DAY),
            (HOUR, HOUR),
            (SECOND, HOUR),
            (timedelta(), None),
            (-SECOND, None),
        ],
    )
    def test_nearest_one_is_due_and_none_once_the_time_is_up(self, left, notice):
        assert due_reminder(ending(left), NOW) == notice

    def test_given_for_this_end_is_not_owed_again(self):
        soon, sooner = NOW + 2 * HOUR, NOW + HOUR

        assert due_reminder(ending(2 * HOUR, day=soon), NOW) is None
        assert due_reminder(ending(HOUR, hour=sooner), NOW) is None

    def test_given_for_an_earlier_end_is_owed_for_this_one(self):
        assert due_reminder(ending(2 * HOUR, day=NOW - DAY), NOW) == DAY
        assert due_reminder(ending(HOUR, day=NOW, hour=NOW), NOW) == HOUR

    def test_week_of_a_permanent_one_is_reminded_of_a_day_before_only(self):
        assert due_reminder(ending(DAY, permanent=True), NOW) == DAY
        assert due_reminder(ending(HOUR, permanent=True), NOW) == DAY
        assert due_reminder(ending(HOUR, day=NOW + HOUR, permanent=True), NOW) is None

    @pytest.mark.parametrize(
        ("lasts", "spared"),
        [(HOUR, 2), (HOUR + SECOND, 1), (DAY, 1), (DAY + SECOND, 0), (30 * DAY, 0)],
    )
    def test_what_would_come_at_once_is_spared(self, lasts, spared):
        marks = reminders.skipped_reminders(NOW + lasts, NOW)

        assert sum(mark is not None for mark in marks.values()) == spared

    @given(
        st.integers(1, 40 * 86_400),
        st.lists(st.integers(0, 41 * 86_400), max_size=40).map(sorted),
    )
    def test_however_rarely_one_looks_each_is_given_at_most_once_and_in_order(self, lasts, looks):
        ends_at = NOW + timedelta(seconds=lasts)
        marks = reminders.skipped_reminders(ends_at, NOW)
        given_at = []

        for look in looks:
            at = NOW + timedelta(seconds=look)
            notice = due_reminder(Episode(expires_at=ends_at, **marks), at)
            if notice:
                marks["hour_reminder_for" if notice == HOUR else "day_reminder_for"] = ends_at
                given_at.append((notice, ends_at - at))

        notices = [notice for notice, _ in given_at]
        assert notices in ([], [DAY], [HOUR], [DAY, HOUR])
        assert all(timedelta() < left <= notice for notice, left in given_at)
        assert DAY not in notices or lasts > DAY.total_seconds()
        assert HOUR not in notices or lasts > HOUR.total_seconds()


@pytest.mark.django_db
class TestRemind:
    def test_a_day_and_an_hour_before_once_each(self):
        episode = engage()
        ends = episode.expires_at

        turns = [ends - DAY - SECOND, ends - DAY, ends - DAY + HOUR, ends - HOUR, ends - SECOND]
        given = [services.remind_due(now) for now in turns]

        assert given == [0, 1, 0, 1, 0]
        day, hour = messages.find("episode.expires_soon")
        assert (day.payload["left"], hour.payload["left"]) == ("24 h", "1 h")
        assert (day.severity, hour.severity) == ("warning", "critical")
        assert day.subject == hour.subject == f"episode:{episode.pk}"

    @pytest.mark.parametrize(("expires_in", "given"), [("24h", 1), ("25h", 2), ("1h", 0)])
    def test_one_that_would_come_at_once_is_not_given(self, expires_in, given):
        ends = engage(expires_in=expires_in).expires_at

        turns = [NOW, NOW + SECOND, ends - DAY, ends - HOUR, ends - HOUR + SECOND]
        counts = [services.remind_due(now) for now in sorted(turns)]

        assert sum(counts) == len(messages.find("episode.expires_soon")) == given

    def test_extension_arms_them_again(self):
        first = engage().expires_at
        services.remind_due(first - DAY)
        extended = extend(now=first - DAY + SECOND)

        assert services.remind_due(first - HOUR) == 0
        assert services.remind_due(extended.expires_at - DAY) == 1
        assert services.remind_due(extended.expires_at - HOUR) == 1

    def test_after_a_long_silence_only_the_nearest_one_is_given(self):
        episode = engage()

        assert services.remind_due(episode.expires_at - timedelta(minutes=20)) == 1
        assert services.remind_due(episode.expires_at - timedelta(minutes=19)) == 0
        (only,) = messages.find("episode.expires_soon")
        assert only.payload["left"] == "20 min"

    def test_none_is_given_after_the_expiry(self):
        ends = engage().expires_at

        assert services.remind_due(ends) == services.remind_due(ends + DAY) == 0

    @pytest.mark.parametrize(
        ("policy", "text"),
        [("hold", "OVERDUE"), ("ramp", "At expiry a ramp starts"), ("release", "released")],
    )
    def test_says_what_happens_then(self, policy, text):
        ends = engage("feature:chat", on_expiry=policy).expires_at

        services.remind_due(ends - DAY)

        (message,) = messages.find("episode.expires_soon")
        assert text in message.payload["said"]
        assert message.severity == "warning"

    def test_of_an_ended_or_overdue_one_none_is_given(self):
        released, late = engage(), engage("segment:late")
        services.release(
            scope="segment",
            key="finance",
            justification="fixed",
            mode="immediate",
            actor=system_actor("shell"),
            now=NOW + HOUR,
        )
        Episode.objects.filter(pk=late.pk).update(overdue_at=NOW)

        assert services.remind_due(released.expires_at - HOUR) == 0

    def test_of_a_ramping_one_none_is_given_until_it_is_engaged_again(self):
        episode = engage("feature:chat")
        Episode.objects.update(allow_percent=5)

        assert services.remind_due(episode.expires_at - HOUR) == 0
        Episode.objects.update(allow_percent=0)
        assert services.remind_due(episode.expires_at - HOUR) == 1

    def test_more_than_a_few_are_told_in_one_message(self):
        for number in range(3):
            engage(f"segment:hold-{number}")
        engage("feature:lets-go", on_expiry="release")
        ends = NOW + 3 * DAY

        assert services.remind_due(ends - DAY) == 4
        assert services.remind_due(ends - DAY + SECOND) == 0

        (digest,) = messages.find("episodes.expire_soon")
        assert digest.payload["count"] == 4
        assert digest.payload["held"] == "segment:hold-0, segment:hold-1, segment:hold-2"
        assert digest.payload["released"] == "feature:lets-go"
        assert not messages.find("episode.expires_soon")

    def test_300_at_once_are_one_message_of_bounded_length(self):
        engage_alike(engage("segment:s0"), [f"segment:s{number}" for number in range(1, 300)])

        services.remind_due(NOW + 2 * DAY)

        (digest,) = messages.find("episodes.expire_soon")
        assert digest.payload["held"].endswith("and 290 more")
        assert len(digest.payload["switches"]) == 300


@pytest.mark.django_db
class TestManyTogether:
    def test_group_reminded_a_day_before_is_reminded_an_hour_before_as_well(self):
        for number in range(5):
            engage(f"feature:f{number}")
        end = NOW + timedelta(days=3)

        turns = [services.remind_due(end - before) for before in (DAY, DAY, HOUR, HOUR)]

        assert turns == [5, 0, 5, 0]
        a_day, an_hour = messages.find("episodes.expire_soon")
        assert (a_day.created_at, an_hour.created_at) == (end - DAY, end - HOUR)
        assert a_day.payload["count"] == an_hour.payload["count"] == 5

    @pytest.mark.parametrize("switches", [3, 6])
    def test_one_that_cannot_be_reminded_of_does_not_keep_the_rest(self, switches):
        broken, *_ = [engage(f"feature:f{number}") for number in range(switches)]
        with connection.cursor() as cursor:
            cursor.execute(
                "set constraints all immediate;"
                f" alter table switches_episode add constraint broken"
                f" check (id <> {broken.pk} or day_reminder_for is null)"
            )

        with pytest.raises(ExceptionGroup) as failed:
            services.remind_due(NOW + timedelta(days=2))

        assert len(failed.value.exceptions) == 1
        assert Episode.objects.filter(day_reminder_for=None).get() == broken
        found = messages.find("episodes.expire_soon") + messages.find("episode.expires_soon")
        assert sum(one.payload.get("count", 1) for one in found) == switches - 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("switches", [1, 6])
def test_two_turns_at_once_give_each_reminder_once(switches):
    now = db_now()
    for number in range(switches):
        engage(f"segment:s{number}", now=now)

    given = at_once(*[lambda: services.remind_due(now + 2 * DAY)] * 4)

    assert sum(given) == switches
    assert Episode.objects.filter(day_reminder_for__isnull=False).count() == switches
    covered = [
        switch
        for message in OutboxMessage.objects.filter(event__contains="expire")
        for switch in message.payload.get("switches", [message.payload.get("switch")])
    ]
    assert sorted(covered) == sorted(f"segment:s{number}" for number in range(switches))
