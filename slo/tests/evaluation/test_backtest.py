"""Backtests of stored history: the states of the tick, and the alerts they would have opened."""

import json
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from controlplane.core.canonical import timestamp
from slo.arithmetic.minutes import end_of
from slo.backtests import replay
from slo.models import Alert, Exclusion, SloStatus
from slo.tests import factories

from .histories import make_objective, rule
from .scenarios import (
    BAD,
    GOOD,
    MINUTE,
    NONE,
    NOON,
    PAGE,
    TICKET,
    alert,
    create_burning_slo,
    evaluate_minutes,
)

pytestmark = pytest.mark.django_db

STORY = [*[BAD] * 3, *[GOOD] * 20, *[NONE] * 20, *[BAD] * 10, *[GOOD] * 40]
AFTER = NOON + len(STORY)


def ticks(slo, first=NOON, last=AFTER, **more):
    return list(replay.evaluate_ticks(slo, start=end_of(first), end=end_of(last), **more))


@pytest.mark.slow
def test_each_tick_is_what_the_beat_kept_of_its_minute():
    slo = create_burning_slo(after=STORY, rules=[PAGE, TICKET])

    for at, found in ticks(slo):
        evaluate_minutes(int(at.timestamp()) // 60)
        status = SloStatus.objects.get()
        assert (status.state, status.burn_rates) == (found.state, found.burn_rates)
        assert [one["state"] for one in status.rules] == [one.state for one in found.rules]


def test_the_alerts_it_tells_of_are_those_that_the_beat_opened():
    slo = create_burning_slo(after=STORY, rules=[PAGE, TICKET])
    evaluate_minutes(NOON, NOON + len(STORY))

    found = replay.collect_alerts(ticks(slo))

    rows = Alert.objects.order_by("pk")
    assert len(found) > 2
    assert [(one.rule.key, one.opened_at, one.resolved_at) for one in found] == [
        (one.rule, one.opened_at, one.resolved_at) for one in rows
    ]


def test_an_alert_has_the_worst_rates_and_is_open_at_the_end_if_it_still_fires():
    slo = create_burning_slo(after=[BAD] * 10)

    (one,) = replay.collect_alerts(ticks(slo, NOON, NOON + 8))

    assert (one.opened_at, one.resolved_at) == (end_of(NOON + 2), None)
    assert one.worst["5m"] == 500


def test_other_rules_are_judged_without_being_kept():
    slo = create_burning_slo(after=[BAD] * 10)
    other = make_objective(rule("30m", "3m", "100"), rule("1h", "5m", "500"))

    found = replay.collect_alerts(ticks(slo, objective=other))

    assert [one.rule.long for one in found] == ["30m"]
    assert not Alert.objects.exists()


def test_what_is_excluded_does_not_count():
    slo = create_burning_slo(after=[*[BAD] * 3, *[GOOD] * 20])
    Exclusion.objects.create(
        slo=slo, starts_at=end_of(NOON), ends_at=end_of(NOON + 3), reason="upgrade",
        created_by="user:ada", created_at=end_of(NOON),
    )  # fmt: skip

    assert not replay.collect_alerts(ticks(slo, NOON, NOON + 20))


def run_command(*arguments):
    out = StringIO()
    call_command("slo", "backtest", "core-availability", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_the_command_prints_a_line_of_json_for_each_tick_ends_included():
    create_burning_slo(after=STORY)

    lines = run_command("--start", str(NOON * 60), "--end", timestamp(end_of(NOON + 5)), "--json")

    rows = [json.loads(one) for one in lines]
    assert [one["at"] for one in rows] == [timestamp(end_of(NOON + n)) for n in range(6)]
    assert rows[2] == {
        "at": timestamp(end_of(NOON + 2)),
        "state": "firing",
        "burn_rates": {"5m": 200.12, "30m": 33.52, "1h": 16.86, "6h": 2.976667},
        "rules": [{"long": "1h", "short": "5m", "state": "firing"}],
    }


def test_a_step_of_another_length_judges_the_last_minute_that_had_ended():
    create_burning_slo(after=STORY)

    lines = run_command(
        "--start", str(NOON * 60), "--end", str(NOON * 60 + 130), "--step", "45", "--json"
    )

    assert [json.loads(one)["state"] for one in lines] == ["ok", "ok", "ok"]


def test_without_times_it_is_all_that_is_known():
    factories.counted(factories.slo(), [(NOON + n, n, n) for n in range(10)])

    assert len(run_command()) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--start", "soon"), "is not a time"),
        (("--step", "0"), "whole number of seconds"),
        (("--start", "100", "--end", "40"), "--end must not be before --start"),
        ((), "has no data yet"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_line(arguments, message):
    factories.slo()

    with pytest.raises(CommandError, match=message):
        run_command(*arguments)


def test_an_slo_that_is_not_there_is_said():
    with pytest.raises(CommandError, match="There is no SLO"):
        run_command()


def test_an_slo_that_is_not_made_yet_is_unknown_throughout():
    draft = SimpleNamespace(pk=None, target=0, window_days=1)

    found = list(
        replay.evaluate_ticks(
            draft, start=end_of(NOON), end=end_of(NOON) + 3 * MINUTE, step=timedelta(minutes=1),
            objective=make_objective(rule("1h", "5m", "14")),
        )
    )  # fmt: skip

    assert [one.state for _, one in found] == ["unknown"] * 4
    assert not Alert.objects.exists()
    assert alert is not None
