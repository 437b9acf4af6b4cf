"""Emergency orders hold in any schedule of planes, partitions, crashes, restores and people.

For more schedules: `make test ARGS='controlplane/dataplane/tests/test_order_model.py
--hypothesis-profile thorough --timeout 0'` tries 10,000, and other ones each time.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from .order_model.world import OFTEN, STEPS, World

STEP = st.one_of(
    st.tuples(st.just(name), *map(st.sampled_from, STEPS[name])) for name in (*STEPS, *OFTEN)
)


class EmergencyOrders(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.holds = True

    @rule(step=STEP)
    def do(self, step: tuple[Any, ...]) -> None:
        self.holds = False
        self.world.do(*step)
        self.holds = True

    def teardown(self) -> None:
        if self.holds:
            self.world.heal()


TestEmergencyOrders = pytest.mark.slow(EmergencyOrders.TestCase)
TestEmergencyOrders.settings = settings(
    max_examples=settings().max_examples * 10, stateful_step_count=40
)
