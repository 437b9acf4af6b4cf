"""Construction of the questions (:class:`GateQuestion`) to the gates of a ramp's step."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.core.gates.questions import GateQuestion
from switches.models import Ramp


def build_questions(
    ramp: Ramp, index: int, gates: Sequence[Mapping[str, Any]], since: datetime
) -> list[GateQuestion]:
    """Return one question per gate of the step, in order; `since` is the start of the step."""
    step = approval_target(ramp, index)
    return [
        GateQuestion(f"ramp:{ramp.pk}:{index}:{number}", gate, since, step)
        for number, gate in enumerate(gates)
    ]


def approval_target(ramp: Ramp, index: int) -> str:
    """Return the target of a step's approval, such as `feature:nl2sql#ramp-12-1`."""
    return f"{ramp.switch_id}#ramp-{ramp.pk}-{index}"
