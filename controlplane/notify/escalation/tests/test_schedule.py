"""The pure schedule of notifications, stepped through time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.notify.escalation import schedule
from controlplane.notify.escalation.schedule import EscalationStatus, ScheduledStep

START = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
CRITICAL = (0, 5, 15, 30)
TURN = timedelta(seconds=15)


def minutes(count):
    return timedelta(minutes=count)


def steps(*after, mute=()):
    return [ScheduledStep(minutes(each), index not in mute) for index, each in enumerate(after)]


def apply_verdict(standing, verdict, now):
    """Return the state after the verdict was carried out."""
    if verdict.kind is None:
        return replace(standing, step=verdict.step)
    return replace(
        standing,
        step=verdict.step,
        reached=standing.reached or bool(verdict.notified),
        notified_at=now,
    )


def run(ladder, until, *, severity="critical", acknowledged=None, every=TURN, away=()):
    """Return [(minutes since the start, kind, steps notified)], with a tick at least `every`."""
    status, next_at, now, notices = EscalationStatus(severity, START), START, START, []
    while now <= START + until:
        if (
            acknowledged is not None
            and now >= START + acknowledged
            and not _is_acknowledged(status)
        ):
            status = replace(status, acknowledged_at=now)
            next_at = now + schedule.QUIET_PERIOD
        present = any(begin <= now - START < end for begin, end in away)
        if next_at <= now and not present:
            verdict = schedule.evaluate(status, ladder, now)
            if verdict.kind:
                notices.append(((now - START) / minutes(1), verdict.kind, verdict.notified))
            status, next_at = apply_verdict(status, verdict, now), verdict.next_at
        now += every
    return notices


def _is_acknowledged(standing):
    return standing.acknowledged_at is not None


def test_nobody_acknowledges_and_each_step_is_told_at_its_time_then_hourly():
    notices = run(steps(*CRITICAL), minutes(155))

    assert notices == [
        (0, "step", (0,)),
        (5, "step", (1,)),
        (15, "step", (2,)),
        (30, "step", (3,)),
        (90, "repeat", (0, 1, 2, 3)),
        (150, "repeat", (0, 1, 2, 3)),
    ]


def test_acknowledged_and_it_is_quiet_for_a_day_then_daily():
    notices = run(steps(*CRITICAL), timedelta(days=3, minutes=5), acknowledged=minutes(7))

    day = 24 * 60
    assert notices[:2] == [(0, "step", (0,)), (5, "step", (1,))]
    assert [(at, kind) for at, kind, _ in notices[2:]] == [
        (day + 7, "reminder"),
        (2 * day + 7, "reminder"),
    ]
    assert notices[2][2] == (0, 1)


def test_step_that_reaches_nobody_hands_on_at_once():
    notices = run(steps(*CRITICAL, mute={0, 1}), minutes(31))

    assert notices == [(0, "step", (2,)), (30, "step", (3,))]


def test_last_steps_reach_nobody_and_it_repeats_to_those_who_were_told():
    notices = run(steps(*CRITICAL, mute={2, 3}), minutes(66))

    assert notices == [(0, "step", (0,)), (5, "step", (1,)), (65, "repeat", (0, 1))]


def test_nobody_at_all_is_reached_and_the_routes_are_told_hourly():
    notices = run(steps(*CRITICAL, mute={0, 1, 2, 3}), minutes(121))

    assert notices == [(0, "repeat", ()), (60, "repeat", ()), (120, "repeat", ())]


def test_somebody_named_after_all_is_told_at_the_next_look():
    standing = apply_verdict(EscalationStatus("critical", START), verdict := schedule.evaluate(
        EscalationStatus("critical", START), steps(*CRITICAL, mute={0, 1, 2, 3}), START
    ), START)  # fmt: skip
    assert verdict.notified == ()

    later = schedule.evaluate(standing, steps(*CRITICAL, mute={2, 3}), START + minutes(7))

    assert (later.kind, later.notified) == ("step", (0, 1))


def test_clock_away_for_hours_and_one_message_catches_up():
    notices = run(steps(*CRITICAL), minutes(360), away=[(minutes(1), minutes(300))])

    assert notices[:2] == [(0, "step", (0,)), (300, "step", (1, 2, 3))]
    assert [at for at, _, _ in notices[2:]] == [360]


def test_steps_get_shorter_and_longer_meanwhile():
    standing = EscalationStatus(
        "critical", START, step=4, reached=True, notified_at=START + minutes(30)
    )

    fewer = schedule.evaluate(standing, steps(0, 5), START + minutes(95))
    more = schedule.evaluate(standing, steps(*CRITICAL, 60), START + minutes(61))

    assert (fewer.kind, fewer.notified) == ("repeat", (0, 1))
    assert (more.kind, more.notified) == ("step", (4,))


def test_info_is_repeated_daily():
    notices = run(steps(0), timedelta(days=2, minutes=1), severity="info", every=minutes(1))

    assert [at for at, _, _ in notices] == [0, 24 * 60, 48 * 60]


@pytest.mark.parametrize(
    ("acknowledged", "notified", "due_in", "comes"),
    [
        (None, 50, 30, True),
        (None, 50, 31, False),
        (0, -10, 5, False),  # The first after an acknowledgement waits its 24 hours.
        (0, 24 * 60, 60 * 12, True),
        (0, 24 * 60, 60 * 13, False),
    ],
)
def test_repeat_that_is_due_soon_comes_along(acknowledged, notified, due_in, comes):
    standing = EscalationStatus(
        "critical",
        START,
        step=4,
        reached=True,
        notified_at=START + minutes(notified),
        acknowledged_at=None if acknowledged is None else START + minutes(acknowledged),
    )
    now = START + timedelta(days=2)

    assert schedule.may_send_early(standing, now, now + minutes(due_in)) is comes


ladders = st.lists(st.integers(0, 300), min_size=1, max_size=6, unique=True).map(sorted)


@given(ladders, st.sets(st.integers(0, 5)), st.lists(st.integers(1, 400), max_size=12))
def test_whenever_the_clock_runs_every_reaching_step_is_told_once_and_none_early_without_cause(
    after, mute, gaps
):
    ladder = steps(*after, mute=mute)
    status, now, notices = EscalationStatus("critical", START), START + minutes(after[0]), []
    for gap in [0, *gaps, 400]:
        now += minutes(gap)
        verdict = schedule.evaluate(status, ladder, now)
        if verdict.kind == "step":
            notices += [(index, now) for index in verdict.notified]
        status = apply_verdict(status, verdict, now)

    reaching = [index for index, step in enumerate(ladder) if step.reaches]
    assert [index for index, _ in notices] == reaching
    for index, at in notices:
        handed_on = index > 0 and not ladder[index - 1].reaches
        assert at >= START + ladder[index].after or handed_on


@given(ladders, st.sets(st.integers(0, 5)), st.integers(0, 3000))
def test_a_verdict_always_says_when_to_look_again_and_then_something_is_due(after, mute, later):
    ladder = steps(*after, mute=mute)
    now = START + minutes(later)

    first = schedule.evaluate(EscalationStatus("warning", START), ladder, now)
    standing = apply_verdict(EscalationStatus("warning", START), first, now)
    again = schedule.evaluate(standing, ladder, first.next_at)

    assert first.next_at > now or first.kind == "step"
    assert again.kind is not None or again.next_at > first.next_at


@given(ladders, st.sets(st.integers(0, 5)))
def test_never_more_than_an_hour_goes_by_in_silence_once_the_steps_are_over(after, mute):
    notices = run(steps(*after, mute=mute), minutes(1000), every=minutes(1))

    moments = [at for at, _, _ in notices]
    last_step = max([at for at, kind, _ in notices if kind == "step"], default=0)
    tail = [at for at in moments if at >= last_step]
    assert notices
    assert all(later - earlier <= 61 for earlier, later in pairwise(tail))
    assert 1000 - moments[-1] <= 61


def test_looked_at_early_it_is_no_reason_to_remind_again():
    standing = EscalationStatus(
        "critical",
        START,
        step=1,
        reached=True,
        notified_at=START + timedelta(hours=25),
        acknowledged_at=START,
    )

    verdict = schedule.evaluate(standing, steps(*CRITICAL), START + timedelta(hours=26))

    assert verdict.kind is None
    assert verdict.next_at == START + timedelta(hours=49)


def announced(ladder, at):
    """Return the verdict `at` minutes after only the routes were notified."""
    standing = EscalationStatus("critical", START, notified_at=START)
    return schedule.evaluate(standing, ladder, START + minutes(at))


def test_announced_with_nobody_reachable_is_repeated_after_an_hour():
    ladder = steps(*CRITICAL, mute=(0, 1, 2, 3))

    assert (announced(ladder, 0).kind, announced(ladder, 0).next_at) == (None, START + minutes(60))
    assert announced(ladder, 59.9).kind is None
    assert announced(ladder, 60).kind == "repeat"


def test_announced_steps_are_told_at_their_time_all_the_same():
    assert announced(steps(*CRITICAL), 0).notified == (0,)
    assert announced(steps(*CRITICAL, mute=(0, 1)), 0).notified == (2,)
