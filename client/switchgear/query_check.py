"""The check of a service's query object, with department and intent, against the switches."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from inspect import getattr_static
from typing import Any, Protocol

from switchgear.evaluation.decisions import Decision


class Query(Protocol):
    """A query object of a service. An attribute that is None or missing is not checked.

    The segment checked is the `department`. With a `targeting_key` the decision of a ramping switch
    is stable; without one it is random for each call.
    """

    @property
    def segment(self) -> Mapping[str, str]: ...
    @property
    def intent(self) -> str | None: ...
    @property
    def experiments(self) -> Iterable[str]: ...


def check_query(query: Query, check: Callable[..., Decision]) -> tuple[bool, str | None]:
    """Return True and None if the query is allowed, otherwise False and a message for the user."""
    segment = _get_field(query, "segment")
    department = segment.get("department") if isinstance(segment, Mapping) else segment
    decision = check(
        segment=department,
        feature=_get_field(query, "intent"),
        experiments=_get_field(query, "experiments"),
        targeting_key=_get_field(query, "targeting_key"),
    )
    if decision.allowed:
        return True, None
    scope, _, key = (decision.switch or "").partition(":")
    messages = {
        "global": "system temporarily disabled",
        "segment": f"segment {key} disabled: {decision.reason}",
        "feature": "feature disabled",
    }
    return False, messages.get(scope, f"{scope} {key} disabled")


def _get_field(query: Query, name: str) -> Any:
    """Return an attribute, or None if it is missing.

    The :class:`AttributeError` of a property is not ignored, since that could allow a stopped call.
    """
    try:
        return getattr(query, name)
    except AttributeError:
        if isinstance(getattr_static(query, name, None), property | cached_property):
            raise
        return None
