"""What Prometheus is told of switches."""

import pytest

from controlplane.core.actors import system
from controlplane.core.clock import db_now
from switches import metrics, services

ACTOR = system("test")


def engage(key):
    services.engage(
        scope="segment",
        key=key,
        reason="card payments charged twice",
        expires_in="24h",
        actor=ACTOR,
        now=db_now(),
    )


@pytest.mark.django_db
def test_a_switch_is_one_while_engaged_and_zero_afterwards():
    engage("finance")
    engage("chat")
    services.release(
        scope="segment",
        key="chat",
        justification="provider confirmed the fix",
        mode="immediate",
        actor=ACTOR,
        now=db_now(),
    )

    (family,) = metrics.engaged(db_now())

    assert family.name == "switchgear_switch_engaged"
    told = {(s.labels["scope"], s.labels["key"]): s.value for s in family.samples}
    assert told == {("segment", "finance"): 1, ("segment", "chat"): 0}
