"""Numbers of a plan, as typed into the form and as JSON."""

import pytest

from controlplane.core.errors import InvalidInput
from controlplane.core.gates.fields import parse_number
from switches.ramps import plan


@pytest.mark.parametrize("typed", ["٥", "1_0", "５", "nan", "inf", "1e", ".", "5,5", ""])
def test_a_number_is_typed_in_plain_digits(typed):
    assert parse_number(typed) == typed


@pytest.mark.parametrize(
    ("typed", "read"), [("5", 5), ("12.5 %", 12.5), ("-1", -1), (".5", 0.5), ("1e-05", 1e-05)]
)
def test_a_number_is_read(typed, read):
    assert parse_number(typed) == read


@pytest.mark.parametrize(
    "share",
    [10**400, -(10**400), float("nan"), float("inf"), 100.5, 0],
    ids=["huge", "huge below zero", "nan", "inf", "over", "zero"],
)
def test_a_share_out_of_reach_is_refused_in_words(share):
    with pytest.raises(InvalidInput) as refused:
        plan.read_plan([{"percent": share}])

    assert refused.value.errors["plan[0].percent"] == ["Must be a number from 0.01 to 100."]
