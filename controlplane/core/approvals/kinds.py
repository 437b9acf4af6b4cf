"""What apps register for each kind of request: what it does, its lock, and its rule for reasons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval

CarryOut = Callable[[Approval, Actor, datetime], None]
CheckReason = Callable[[str], Sequence[str]]
"""What is wrong with a reason, in sentences."""

InWords = Callable[[Sequence[Approval]], Sequence[Mapping[str, Any]]]
"""The `diff` of each as people would say it, in the same order."""


def _nothing() -> None:
    """No lock comes before the approval's own."""


def _nothing_ends(_approval: Approval, _actor: Actor, _now: datetime) -> None:
    """A request that comes to nothing leaves nothing behind."""


def _reaches_little(_approval: Approval) -> bool:
    return False


def _as_kept(approvals: Sequence[Approval]) -> Sequence[Mapping[str, Any]]:
    return [{name: one.diff[name] for name in one.diff if name != "episode"} for one in approvals]


def _any_reason(_reason: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Registered:
    """What there is for a kind; `carry_out` is None for one that no app here knows.

    `prolongs`: whether the time of a request begins again when it is edited. `reaches_far`: whether
    who approves it has to show again who they are. `in_words`: what its page shows as changed.
    """

    carry_out: CarryOut | None = None
    lock_first: Callable[[], object] = _nothing
    check_reason: CheckReason = _any_reason
    ended: CarryOut = _nothing_ends
    prolongs: bool = True
    reaches_far: Callable[[Approval], bool] = _reaches_little
    in_words: InWords = _as_kept


_registered: dict[str, Registered] = {}


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

    `lock_first` takes the lock that comes before the approval's own in the lock order;
    `check_reason` says what is wrong with a reason, for those that edit a request. `ended` is
    called when it comes to nothing: denied, lapsed or withdrawn, and not asked for anew. Without
    `prolongs` an edited request waits no longer than the one it replaces: something waits for it.
    `reaches_far` says of which requests an approver has to show again who they are.
    `in_words` gives what its page shows as changed.
    """

    def register(function: CarryOut) -> CarryOut:
        _registered[kind] = Registered(
            function, lock_first, check_reason, ended, prolongs, reaches_far, in_words
        )
        return function

    return register


def kind(name: str) -> Registered:
    """What is registered for a kind; of a row that outlived its app that is nothing."""
    return _registered.get(name, Registered())
