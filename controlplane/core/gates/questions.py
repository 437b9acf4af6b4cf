"""A gate as it is asked, and what comes back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PASS, FAIL, NO_DATA, WAITING = "pass", "fail", "no_data", "waiting"


@dataclass(frozen=True)
class Question:
    """`key` names who asks (`ramp:12:1:0`); `spec` is the gate as the plan has it.

    Nothing from before `since` may count.
    """

    key: str
    spec: Mapping[str, Any]
    since: datetime

    @property
    def type(self) -> str:
        return str(self.spec["type"])


@dataclass(frozen=True)
class Answer:
    """A verdict (`pass`, `fail`, `no_data`), and plain JSON values that show why."""

    verdict: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
