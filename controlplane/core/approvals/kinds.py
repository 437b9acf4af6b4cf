"""Registry of the kinds of requests: the action on approval, its lock, its rule for reasons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval

CarryOut = Callable[[Approval, Actor, datetime], None]
CheckReason = Callable[[str], Sequence[str]]
"""Return the problems of a reason, in sentences."""

InWords = Callable[[Sequence[Approval]], Sequence[Mapping[str, Any]]]
"""The `diff` of each as people would say it, in the same order."""


def _nothing() -> None:
    """Take no lock before the approval's own."""


def _nothing_ends(_approval: Approval, _actor: Actor, _now: datetime) -> None:
    """Do nothing when a request comes to nothing."""


def _reaches_little(_approval: Approval) -> bool:
    return False


def _as_kept(approvals: Sequence[Approval]) -> Sequence[Mapping[str, Any]]:
    return [{name: one.diff[name] for name in one.diff if name != "episode"} for one in approvals]


def _any_reason(_reason: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class ApprovalKind:
    """The behavior of a kind; `carry_out` is None if no app here has the kind.

    `prolongs` restarts the time of a request when it is edited. `reaches_far` decides if approvers
    confirm their identity. `in_words` returns the changes that its page shows.
    """

    carry_out: CarryOut | None = None
    lock_first: Callable[[], object] = _nothing
    check_reason: CheckReason = _any_reason
    ended: CarryOut = _nothing_ends
    prolongs: bool = True
    reaches_far: Callable[[Approval], bool] = _reaches_little
    in_words: InWords = _as_kept


_registered: dict[str, ApprovalKind] = {}


def carries_out(
    kind: str,
    *,
    lock_first: Callable[[], object],
    check_reason: CheckReason = _any_reason,
    ended: CarryOut = _nothing_ends,
    prolongs: bool = True,
    reaches_far: Callable[[Approval], bool] = _reaches_little,
    in_words: InWords = _as_kept,
) -> Callable[[CarryOut], CarryOut]:
    """Register the function that does what an approval of this kind allows.

    `lock_first` takes the lock that comes before the approval's own in the lock order.
    `check_reason` returns the errors of an edited reason. `ended` is called when the request is
    denied, expires or is withdrawn, and is not requested anew. Without `prolongs` an edited request
    waits no longer than the one it replaces. `reaches_far` decides if approvers confirm their
    identity. `in_words` returns the changes that its page shows.
    """

    def register(function: CarryOut) -> CarryOut:
        _registered[kind] = ApprovalKind(
            function, lock_first, check_reason, ended, prolongs, reaches_far, in_words
        )
        return function

    return register


def get_kind(name: str) -> ApprovalKind:
    """Return the behavior of a kind; an empty one if its app is gone."""
    return _registered.get(name, ApprovalKind())
