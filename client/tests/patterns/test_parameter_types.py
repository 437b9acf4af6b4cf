"""Parameters of a wrong type raise `TypeError` by name; wrong values, `ValueError`."""

from typing import Any

import pytest

from switchgear.llm.spend_budget import SpendBudget
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import (
    BreakerParameters,
    BulkheadParameters,
    HttpTimeouts,
    RetryParameters,
    SpendParameters,
)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (BreakerParameters, {"failure_rate": "0.5"}),
        (BreakerParameters, {"minimum_calls": 2.5}),
        (BreakerParameters, {"open_seconds": None}),
        (BreakerParameters, {"window_type": ["time"]}),
        (RetryParameters, {"attempts": True}),
        (RetryParameters, {"backoff": None}),
        (BulkheadParameters, {"limit": "3"}),
        (BulkheadParameters, {"limit": 3, "max_limit": 4.5}),
        (BulkheadParameters, {"limit": 3, "mode": True}),
        (HttpTimeouts, {"read": "30"}),
        (SpendParameters, {"tokens": 1.5}),
        (SpendParameters, {"tokens": True}),
    ],
)
def test_parameter_of_a_wrong_type_is_refused_by_name(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=list(given)[-1]):
        kind(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"name": 3},
        {"cache": 60},
        {"cache_key": "user"},
        {"on": 503},
        {"on": (503,)},
        {"on": [ConnectionError]},
        {"on_switch": "yes"},
        {"is_good": True},
        {"counters": {}},
        {"on_target": "print"},
        {"exhausted": ConnectionError("away")},
    ],
)
def test_argument_of_a_fallback_of_a_wrong_type_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"^{next(iter(given))} must"):
        Fallback(**given)


@pytest.mark.parametrize("given", [0, {}, (), ""])
def test_token_budget_is_not_without_limits_for_parameters_of_a_wrong_type(given: Any) -> None:
    with pytest.raises(TypeError, match="parameters"):
        SpendBudget("tokens", given)
