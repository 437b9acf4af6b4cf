"""Limits of concurrent backtests: one for each person or token, and few in all."""

import pytest

from controlplane.core.actors import Actor
from controlplane.core.errors import TooManyRequests
from slo.backtests.replay import limit_backtests

ADA, KIM, LEE = (Actor(type="user", name=name, user_id=number) for number, name in enumerate("akl"))


def test_second_backtest_of_a_person_is_refused_until_the_first_is_done():
    with limit_backtests(ADA), pytest.raises(TooManyRequests), limit_backtests(ADA):
        pass

    with limit_backtests(ADA):
        pass


def test_backtest_is_refused_while_others_run_as_many_as_may():
    with limit_backtests(ADA), limit_backtests(KIM), pytest.raises(TooManyRequests):  # noqa: SIM117
        with limit_backtests(LEE):
            pass


def test_backtest_that_fails_makes_room():
    with pytest.raises(ZeroDivisionError), limit_backtests(ADA):
        _ = 1 / 0

    with limit_backtests(ADA):
        pass
