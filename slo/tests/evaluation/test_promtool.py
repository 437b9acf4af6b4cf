"""Rule states are those of Prometheus, at every tick of every rule."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from slo.arithmetic.evaluate import evaluate
from slo.arithmetic.increments import (
    MINUTE,
    Sample,
    covered_minutes,
    increment_between,
    split_by_minute,
)
from slo.arithmetic.objective import Objective

from . import promtool
from .histories import NOTHING_KNOWN, MinuteEvents, Past, make_objective, rule, steady_traffic
from .promtool import STATES, Expected, disagreements, events_by_minute, of_counters, values

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        promtool.PROMTOOL is None, reason="promtool (Debian: apt install prometheus) is not here"
    ),
]

SCENARIOS = 20
FEW_SCENARIOS = 6
TICKS = 20
MINUTES = 720
MANY_TICKS = 1000
MANY_MINUTES = 1400
SAMPLED = 3
SAMPLED_TICKS = 6
SAMPLED_MINUTES = 480
RULES = (
    rule("1h", "5m", "14.4"),
    rule("1h", "5m", "14"),
    rule("6h", "30m", "6", "ticket"),
    rule("2h", "10m", "1", "ticket"),
    rule("20m", "2m", "3.5"),
)


@pytest.mark.parametrize(
    "seed",
    [
        *range(FEW_SCENARIOS),
        *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(FEW_SCENARIOS, SCENARIOS)),
    ],
)
def test_ticks_of_a_random_history_are_as_prometheus_says(seed: int, tmp_path: Path) -> None:
    assert compared(seed, MINUTES, TICKS, tmp_path) == ""


@pytest.mark.faults  # For the time it takes: some minutes in all.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 100 + SCENARIOS))
def test_a_thousand_ticks_of_a_random_history_are_as_prometheus_says(
    seed: int, tmp_path: Path
) -> None:
    assert compared(seed, MANY_MINUTES, MANY_TICKS, tmp_path) == ""


def test_every_tick_of_an_incident_is_as_prometheus_says(tmp_path: Path) -> None:
    minutes = [
        *steady_traffic(400),
        *steady_traffic(10, "0.15"),
        *steady_traffic(80),
        *steady_traffic(90, "0.02"),
        *steady_traffic(60),
    ]
    objective = make_objective(*RULES)

    states = expected(minutes, objective, range(395, len(minutes), 3))

    assert {one.state for one in states} == {"ok", "firing"}
    assert disagreements(tmp_path, events_by_minute(minutes, objective), objective, states) == ""


def test_the_scenarios_show_every_state_of_every_rule() -> None:
    seen: dict[str, set[str]] = {}
    for seed in range(SCENARIOS):
        chance = random.Random(seed)
        minutes, objective = history(chance), objective_of(chance)
        for one in expected(minutes, objective, range(0, MINUTES, 10)):
            seen.setdefault(one.rule.key, set()).add(one.state)

    assert seen == {one.key: set(STATES) for one in RULES}


def test_prometheus_disagrees_with_what_is_wrong(tmp_path: Path) -> None:
    minutes = steady_traffic(100, "0.5")
    wrong = [Expected(90, RULES[0], "ok")]

    objective = make_objective(*RULES)
    assert "got" in disagreements(tmp_path, events_by_minute(minutes, objective), objective, wrong)


@pytest.mark.parametrize("seed", range(SAMPLED))
def test_counters_with_resets_and_lost_samples_are_as_prometheus_says(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    samples = counters(chance)
    objective = make_objective(*RULES, target="0.99", days=1)
    minutes = stepped(samples)
    ticks = [tick for tick in range(len(samples)) if samples[tick]]
    states = expected(minutes, objective, sorted(chance.sample(ticks, SAMPLED_TICKS)))
    series = [
        values("good", [one and one.good for one in samples]),
        values("all", [one and one.total for one in samples]),
    ]

    assert disagreements(tmp_path, series, objective, states, of_counters) == ""


def compared(seed: int, length: int, ticks: int, folder: Path) -> str:
    """Return disagreements over `ticks` of a history of `minutes`."""
    chance = random.Random(seed)
    minutes, objective = history(chance, length), objective_of(chance)
    states = expected(minutes, objective, sorted(chance.sample(range(length), ticks)))
    assert len(states) == ticks * len(RULES)
    return disagreements(folder, events_by_minute(minutes, objective), objective, states)


def counters(chance: random.Random) -> list[Sample | None]:
    """Return samples at the end of each minute, some lost but never two in a row, with restarts."""
    found: list[Sample | None] = []
    good = total = 0
    for minute, one in enumerate(history(chance)[:SAMPLED_MINUTES]):
        if chance.random() < 0.01:
            good = total = 0
        good, total = int(good + one.total - one.bad), int(total + one.total)
        is_lost = minute and found[-1] is not None and chance.random() < 0.1
        found.append(None if is_lost else Sample(minute * MINUTE, good, total))
    return found


def stepped(samples: list[Sample | None]) -> list[MinuteEvents]:
    """Return the events of each minute, as ingest takes in the samples."""
    grew: dict[int, tuple[float, float]] = {}
    told_of: set[int] = set()
    there = [one for one in samples if one]
    for before, after in pairwise(there):
        for minute, good, total in split_by_minute(increment_between(before, after)):
            grew[minute] = (good, total)
        told_of |= {*covered_minutes(before.at, after.at)}
    return [
        MinuteEvents(total - good, total, minute in told_of)
        for minute in range(len(samples))
        for good, total in (grew.get(minute, (0, 0)),)
    ]


def history(chance: random.Random, length: int = MINUTES) -> list[MinuteEvents]:
    """Return phases of even and uneven traffic, incidents, silence and gaps."""
    found: list[MinuteEvents] = []
    while len(found) < length:
        traffic = chance.choice([0, 1, 40, 1000, 1000, 100_000])
        share = chance.choice([0, 0, 0.0002, 0.001, 0.0144, 0.015, 0.15, 1])
        is_covered = chance.random() > 0.2
        for _ in range(chance.choice([1, 2, 5, 10, 30, 60, 120])):
            total = chance.randint(traffic // 2, traffic)
            bad = sum(chance.random() < share for _ in range(total)) if total < 50 else None
            if bad is None:
                bad = round(total * share)
            found.append(MinuteEvents(bad, total, is_covered) if total else _idle(is_covered))
    return found[:length]


def _idle(is_covered: bool) -> MinuteEvents:
    return MinuteEvents(0, 0) if is_covered else NOTHING_KNOWN


def objective_of(chance: random.Random) -> Objective:
    excluded = []
    for _ in range(chance.choice([0, 0, 1, 3])):
        begins = chance.randint(0, MINUTES)
        excluded.append((begins, begins + chance.randint(1, 60)))
    return make_objective(
        *RULES,
        target=chance.choice(["0.9", "0.99", "0.999", "0.999"]),
        days=1,
        min_events=chance.choice([0, 0, 100, 30_000]),
        excluded=excluded,
    )


def expected(
    minutes: list[MinuteEvents], objective: Objective, ticks: range | list[int]
) -> list[Expected]:
    past = Past(minutes)
    return [
        Expected(tick, judged.rule, judged.state)
        for tick in ticks
        for judged in evaluate(objective, tick, past.values_at, past.begin).rules
    ]
