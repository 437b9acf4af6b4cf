"""What runs only while it is allowed: decorators and context managers."""

from collections.abc import Callable
from typing import Any, Literal

from switchgear.deciding.evaluate import Decision

Keys = Any
KeyOf = Any
Unknown = Literal["allow", "block"]


class SwitchEngaged(Exception):
    """A switch stops this call: `decision` says which one, and why."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"{decision.switch} is engaged: {decision.reason}")
        self.decision = decision


class Guard:
    def __init__(self, check: Callable[..., Decision], **asked: Any) -> None: ...
