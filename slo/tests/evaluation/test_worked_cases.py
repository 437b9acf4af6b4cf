"""The worked cases: 99.9 % over 30 days, even traffic with 0.02 % bad, and incidents."""

from dataclasses import dataclass

import pytest

from slo.arithmetic.evaluate import FIRING, Evaluation, evaluate

from .histories import MinuteEvents, Past, make_objective, rule, steady_traffic

PAGES = (rule("1h", "5m", "14.4"), rule("6h", "30m", "6"))
TICKETS = (rule("3d", "6h", "1", "ticket"),)
OBJECTIVE = make_objective(*PAGES, *TICKETS)
BEFORE = 30 * 24 * 60
AFTER = 12 * 60


@dataclass(frozen=True)
class Incident:
    """Ticks at which a severity fires; tick 1 is the end of the incident's first minute."""

    evaluations: dict[int, Evaluation]

    def firing(self, severity: str) -> list[int]:
        return [
            tick
            for tick, one in self.evaluations.items()
            if any(j.state == FIRING and j.rule.severity == severity for j in one.rules)
        ]

    def remaining_ratio(self, tick: int) -> float:
        remaining = self.evaluations[tick].remaining_ratio
        assert remaining is not None
        return remaining


def incident(share: str, minutes: int) -> Incident:
    past = Past([*steady_traffic(BEFORE), *steady_traffic(minutes, share), *steady_traffic(AFTER)])
    ticks = range(minutes + AFTER)
    return Incident(
        {tick: evaluate(OBJECTIVE, BEFORE - 1 + tick, past.values_at, past.begin) for tick in ticks}
    )


def test_fifteen_per_cent_for_ten_minutes_pages_after_six_until_four_after_its_end() -> None:
    result = incident("0.15", 10)

    assert result.firing("page") == list(range(6, 10 + 4 + 1))
    assert not result.firing("ticket")


def test_fifteen_per_cent_for_ten_minutes_costs_three_and_a_half_per_cent_of_the_budget() -> None:
    result = incident("0.15", 10)

    assert result.remaining_ratio(0) - result.remaining_ratio(10) == pytest.approx(
        0.0347, abs=0.00005
    )


def test_two_per_cent_for_three_hours_pages_after_44_minutes_and_is_a_ticket_after_175() -> None:
    result = incident("0.02", 180)

    assert min(result.firing("page")) == 44
    assert min(result.firing("ticket")) == 175


def test_a_third_of_a_per_cent_for_a_quarter_of_an_hour_is_nothing() -> None:
    result = incident("0.003", 15)

    assert not result.firing("page")
    assert not result.firing("ticket")


def test_even_traffic_within_the_budget_leaves_what_it_leaves() -> None:
    result = incident("0.0002", 1)

    assert result.remaining_ratio(1) == 0.8
    assert result.evaluations[1].burn_rates == {
        "5m": 0.2, "30m": 0.2, "1h": 0.2, "6h": 0.2, "3d": 0.2
    }  # fmt: skip
    assert result.evaluations[1].exhausts_at is None


def test_a_budget_that_burns_faster_than_it_may_is_spent_at_a_time_that_can_be_told() -> None:
    past = Past(steady_traffic(BEFORE - 6 * 60) + steady_traffic(6 * 60, "0.01"))

    evaluation = evaluate(OBJECTIVE, past.last, past.values_at, past.begin)

    # 0.2 of it over all but the last 6 h, 10 over these: 1 - (0.2 · 714 + 10 · 6) / 720 is left.
    assert evaluation.remaining_ratio == pytest.approx(1 - (0.2 * 714 + 10 * 6) / 720, abs=1e-6)
    assert evaluation.burn_rates["6h"] == 10
    assert evaluation.exhausts_at is not None
    lasts = evaluation.exhausts_at.timestamp() / 60 - past.last
    assert lasts == pytest.approx(evaluation.remaining_ratio * BEFORE / 10, abs=1 / 60)


def test_an_overspent_budget_is_below_zero_and_has_no_time_at_which_it_will_be_spent() -> None:
    past = Past([MinuteEvents(20, 10_000)] * BEFORE)

    evaluation = evaluate(OBJECTIVE, past.last, past.values_at, past.begin)

    assert evaluation.remaining_ratio == -1
    assert evaluation.exhausts_at is None
