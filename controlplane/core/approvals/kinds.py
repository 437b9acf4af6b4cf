"""Registry of the kinds of approval requests: the functions that handle each kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval

KINDS_WITH_SUFFIX = {
    Approval.Kind.RAMP_GATE,
    Approval.Kind.BREAK_GLASS_REVIEW,
    Approval.Kind.GRANT,
}
CarryOut = Callable[[Approval, Actor, datetime], None]
CheckReason = Callable[[str], Sequence[str]]
"""Function that returns the problems of a reason, one sentence each."""

DescribeChanges = Callable[[Sequence[Approval]], Sequence[Mapping[str, Any]]]
"""Function that returns the readable `diff` of each approval, in the same order."""


def get_target(approval: Approval) -> str:
    """Return the id of the switch, rule or other resource that a request concerns.

    Targets of some kinds have a suffix, which tells apart requests about one resource (`#2`).
    """
    if approval.kind not in KINDS_WITH_SUFFIX:
        return approval.target
    return approval.target.rpartition("#")[0] or approval.target


def _hide_episode(approvals: Sequence[Approval]) -> Sequence[Mapping[str, Any]]:
    return [{name: one.diff[name] for name in one.diff if name != "episode"} for one in approvals]


@dataclass(frozen=True)
class ApprovalKind:
    """The functions that handle one kind of approval request.

    `carry_out` makes the approved change; it is None if no installed app handles the kind. `on_end`
    is called when a request is denied, expires or is withdrawn. `lock_first` locks the rows that
    must be locked before the request. `check_reason` returns the problems of an edited reason. With
    `restarts_lifetime`, an edited request expires later. If `requires_confirmation` returns True,
    approvers must confirm their identity. `describe_changes` returns the changes that the approvals
    page shows. `get_resource` returns the resource whose owner decides.
    """

    carry_out: CarryOut | None = None
    lock_first: Callable[[], object] = lambda: None
    check_reason: CheckReason = lambda _reason: ()
    on_end: CarryOut = lambda _approval, _actor, _now: None
    restarts_lifetime: bool = True
    requires_confirmation: Callable[[Approval], bool] = lambda _approval: False
    describe_changes: DescribeChanges = _hide_episode
    get_resource: Callable[[Approval], str] = get_target


_kinds: dict[str, ApprovalKind] = {}


def on_approval(kind: str, **behavior: Any) -> Callable[[CarryOut], CarryOut]:
    """Return a decorator: the function makes the change when a request of this kind is approved.

    `behavior` sets the other fields of :class:`ApprovalKind`.
    """

    def register(function: CarryOut) -> CarryOut:
        _kinds[kind] = ApprovalKind(function, **behavior)
        return function

    return register


def get_kind(name: str) -> ApprovalKind:
    """Return the functions for an approval kind; the defaults if no installed app handles it."""
    return _kinds.get(name, ApprovalKind())


def get_resource(approval: Approval) -> str:
    """Return the resource that a request concerns, such as `segment:finance`."""
    return get_kind(approval.kind).get_resource(approval)
