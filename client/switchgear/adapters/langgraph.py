"""Nodes of LangGraph within patterns; needs `langgraph`.

    graph.add_node("llm", node(policy)(llm_node))
    graph.add_node("search", with_timeout(30)(with_retry(3)(with_breaker(breaker)(search_node))))

A node keeps its kind and signature, so `config`, `runtime`, `store` and `writer` come as before. By
what interrupts, commands and handovers are made of nothing is counted or tried again. A graph that
is resumed begins such a node again, with all that is around it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from langgraph.errors import GraphBubbleUp

from switchgear.adapters.passing import passing
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.timeout import Timeout
from switchgear.refusals import refusal_in

F = TypeVar("F", bound=Callable[..., Any])
Pattern = Callable[[Any], Any]


def node(*patterns: Pattern) -> Callable[[F], F]:
    """Puts patterns around a node, the first one outermost: policies, or single ones. Raises
    :class:`TypeError` for what is no function: of a runnable give `invoke` or `ainvoke`."""

    def decorate(function: F) -> F:
        made = function
        for pattern in reversed(patterns):
            made = passing(pattern, made, (GraphBubbleUp,))
        return made

    return decorate


def with_timeout(seconds: float) -> Callable[[F], F]:
    """A node that is a coroutine function is cut off after `seconds`; a plain one can't be, what
    it calls may ask how much is left."""
    return node(Timeout(seconds))


def with_retry(
    attempts: int = 3,
    retry_on: tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None = None,
    *,
    name: str = "unnamed",
    **parameters: Any,
) -> Callable[[F], F]:
    """Tries a node again, by :class:`RetryParameters`: `retry_on` are errors, None for what passes
    by itself as a rule."""
    terms = RetryParameters(attempts=attempts, **parameters)
    return node(Retry(name, terms, retry_on=retry_on))


def with_breaker(breaker: Breaker, fallback: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """A node within `breaker`. If it fails or is refused, `fallback` gives its update instead, from
    the same arguments."""
    if fallback is None:
        return node(breaker)
    return node(Fallback(breaker.name, fallback, counters=breaker.counters), breaker)


def retry_on(error: BaseException) -> bool:
    """For a `RetryPolicy` of LangGraph: all but what was refused, which is no use to try again. It
    multiplies with a retry that is in the node: have one of both."""
    return isinstance(error, Exception) and refusal_in(error) is None
