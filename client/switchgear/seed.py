"""The check of the source documents: a query in, whether it may go on and what its user is told."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from inspect import getattr_static
from typing import Any, Protocol

from switchgear.evaluation.decisions import Decision


class Query(Protocol):
    """What is asked of a service. What is None, or is not there at all, is not asked for.

    The segment is the one of the `department`. A query that has a `targeting_key` as well stays in
    or out while a switch ramps; without, chance decides anew for each call.
    """

    @property
    def segment(self) -> Mapping[str, str]: ...
    @property
    def intent(self) -> str | None: ...
    @property
    def experiments(self) -> Iterable[str]: ...


def told(query: Query, check: Callable[..., Decision]) -> tuple[bool, str | None]:
    """Whether this query may go on; if not, what its user may be told, else None."""
    segment = _given(query, "segment")
    department = segment.get("department") if isinstance(segment, Mapping) else segment
    decision = check(
        segment=department,
        feature=_given(query, "intent"),
        experiments=_given(query, "experiments"),
        targeting_key=_given(query, "targeting_key"),
    )
    return decision.allowed, None if decision.allowed else _message(decision)


def _given(query: Query, name: str) -> Any:
    """None if it is not there. A property that is there and fails is not passed over: for want of
    its answer a call would go on that somebody has stopped."""
    try:
        return getattr(query, name)
    except AttributeError:
        if isinstance(getattr_static(query, name, None), property | cached_property):
            raise
        return None


def _message(decision: Decision) -> str:
    """The source documents' words: only of a segment the reason is told."""
    scope, _, key = (decision.switch or "").partition(":")
    return {
        "global": "system temporarily disabled",
        "segment": f"segment {key} disabled: {decision.reason}",
        "feature": "feature disabled",
        "experiment": f"experiment {key} disabled",
    }[scope]
