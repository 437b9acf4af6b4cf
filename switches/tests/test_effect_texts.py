"""Texts of a change's effect: the heading and the name of its reach."""

import pytest

from controlplane.core.instances.queries import CheckingInstances
from switches.effect import SwitchEffect, describe_checking


def effect(applied, instances, *, silent=0, past_expiry=False):
    return SwitchEffect(
        version=7,
        applied=applied,
        instances=instances,
        stragglers=(),
        silent_total=silent,
        p50_ms=None,
        p99_ms=None,
        measured=0,
        measured_stopped=0,
        requested_at=None,
        committed_at=None,
        past_expiry=past_expiry,
    )


@pytest.mark.parametrize(
    ("change", "reach", "heading"),
    [
        (effect(0, 0), "unknown", "Committed; effect unknown"),
        (effect(0, 1), "nobody", "Committed. Applied by 0 of 1 instance"),
        (effect(0, 1001), "nobody", "Committed. Applied by 0 of 1,001 instances"),
        (effect(2, 3), "some", "Applied by 2 of 3 instances"),
        (effect(1, 1), "everybody", "Applied by the only reporting instance"),
        (effect(3, 3), "everybody", "Applied by all 3 reporting instances"),
        (
            effect(3, 3, silent=2),
            "all-heard-from",
            "Applied by all 3 reporting instances; 2 stopped reporting",
        ),
        (
            effect(3, 3, past_expiry=True),
            "all-heard-from",
            "Applied by all 3 reporting instances; past its expiry",
        ),
    ],
)
def test_heading_counts_the_instances_that_apply_the_change(change, reach, heading):
    assert (change.reach, change.heading) == (reach, heading)


@pytest.mark.parametrize(
    ("instances", "checking", "sentences"),
    [
        (1, (0, 0, 0), ""),
        (1, (1, 1, 0), "The instance checked this switch in the last hour."),
        (3, (4, 3, 0), "All of them checked this switch in the last hour."),
        (
            1200,
            (1101, 1100, 1),
            "1,100 of them checked this switch in the last hour. 1 other that checked it has"
            " stopped.",
        ),
        (
            1,
            (3, 0, 3),
            "The instance reported no checks of this switch in the last hour."
            " 3 others that checked it have stopped.",
        ),
        (2, (1, 0, 0), "None of them reported checks of this switch in the last hour."),
        (0, (1, 0, 1), "1 instance that checked this switch in the last hour has stopped."),
        (0, (2, 0, 2), "2 instances that checked this switch in the last hour have stopped."),
        (0, (1, 0, 0), ""),
    ],
)
def test_reporting_instances_that_check_the_switch_are_told_from_stopped_ones(
    instances, checking, sentences
):
    assert describe_checking(instances, CheckingInstances(*checking)) == sentences
