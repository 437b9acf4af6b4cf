"""Construction of the gates to evaluate (:class:`GateQuestion`) for a ramp's step."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.core.gates.questions import GateQuestion
from switches.models import Ramp


def build_questions(
    ramp: Ramp, index: int, gates: Sequence[Mapping[str, Any]], since: datetime
) -> list[GateQuestion]:
    """Return the step's gates for evaluation, in order; `since` is the start of the step."""
    step = approval_target(ramp, index)
    return [
        GateQuestion(f"ramp:{ramp.pk}:{index}:{number}", gate, since, step)
        for number, gate in enumerate(gates)
    ]


def approval_target(ramp: Ramp, index: int) -> str:
    """Return the target of a step's approval, such as `feature:nl2sql#ramp-12-1`."""
    return f"{ramp.switch_id}#ramp-{ramp.pk}-{index}"
