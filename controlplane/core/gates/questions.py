"""Input and result of a gate's evaluation. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PASS, FAIL, NO_DATA, WAITING = "pass", "fail", "no_data", "waiting"


@dataclass(frozen=True)
class GateQuestion:
    """A gate to evaluate.

    `key` identifies the gate (`ramp:12:1:0`), and `spec` is the gate as in the plan. Only
    observations since `since`, the start of the step, count. `step` identifies the step for
    approvals (`feature:nl2sql#ramp-12-1`); it is empty if approvals are not possible.
    """

    key: str
    spec: Mapping[str, Any]
    since: datetime
    step: str = ""

    @property
    def type(self) -> str:
        return str(self.spec["type"])


@dataclass(frozen=True)
class GateAnswer:
    """A gate's verdict (`pass`, `fail`, `no_data`, `waiting`), and JSON values that explain it."""

    verdict: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
