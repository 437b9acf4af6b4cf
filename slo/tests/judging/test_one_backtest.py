"""Backtests compute for seconds: one of each person or token at a time, and few in all."""

import pytest

from controlplane.core.actors import Actor
from controlplane.core.errors import TooManyRequests
from slo.judging.backtest import one_at_a_time

ADA, KIM, LEE = (Actor(type="user", name=name, user_id=number) for number, name in enumerate("akl"))


def test_second_backtest_of_a_person_is_refused_until_the_first_is_done():
    with one_at_a_time(ADA), pytest.raises(TooManyRequests), one_at_a_time(ADA):
        pass

    with one_at_a_time(ADA):
        pass


def test_backtest_is_refused_while_others_run_as_many_as_may():
    with one_at_a_time(ADA), one_at_a_time(KIM), pytest.raises(TooManyRequests):  # noqa: SIM117
        with one_at_a_time(LEE):
            pass


def test_backtest_that_fails_makes_room():
    with pytest.raises(ZeroDivisionError), one_at_a_time(ADA):
        _ = 1 / 0

    with one_at_a_time(ADA):
        pass
