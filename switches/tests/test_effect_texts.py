"""Texts of a change's effect: the heading and the name of its reach."""

import pytest

from switches.effect import SwitchEffect


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
