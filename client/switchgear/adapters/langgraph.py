"""LangGraph nodes within patterns; needs `langgraph`.

    graph.add_node("llm", node(policy)(llm_node))
    graph.add_node("search", with_timeout(30)(with_retry(3)(with_breaker(breaker)(search_node))))

A node keeps its kind and signature, so `config`, `runtime`, `store` and `writer` are passed as
before. Interrupts, commands and handovers are neither counted nor retried. A resumed graph runs an
interrupted node again, with all its patterns.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from langgraph.errors import GraphBubbleUp

from switchgear.adapters.control_flow import pass_through
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.timeout import Timeout
from switchgear.refusals import refusal_in

F = TypeVar("F", bound=Callable[..., Any])
Pattern = Callable[[Any], Any]


def node(*patterns: Pattern) -> Callable[[F], F]:
    """Return a decorator that puts patterns around a node, the first one outermost.

    Raise :class:`TypeError` for anything but a function: for a runnable, pass `invoke` or
    `ainvoke`.
    """

    def decorate(function: F) -> F:
        made = function
        for pattern in reversed(patterns):
            made = pass_through(pattern, made, (GraphBubbleUp,))
        return made

    return decorate


def with_timeout(seconds: float) -> Callable[[F], F]:
    """Return a decorator that limits a node to `seconds`.

    A coroutine function is cancelled. A plain function is not, but functions called inside it can
    check the time left.
    """
    return node(Timeout(seconds))


def with_retry(
    attempts: int = 3,
    retry_on: tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None = None,
    *,
    name: str = "unnamed",
    **parameters: Any,
) -> Callable[[F], F]:
    """Return a decorator that retries a node after errors in `retry_on`.

    Without `retry_on`, transient errors are retried. `name` is the subject of recorded events;
    `parameters` are further fields of `RetryParameters`.
    """
    retry_parameters = RetryParameters(attempts=attempts, **parameters)
    return node(Retry(name, retry_parameters, retry_on=retry_on))


def with_breaker(breaker: Breaker, fallback: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Return a decorator that puts `breaker` around a node.

    If the node fails or is refused, `fallback` is called with the node's arguments, and its result
    replaces the node's.
    """
    if fallback is None:
        return node(breaker)
    return node(Fallback(breaker.name, fallback, counters=breaker.counters), breaker)


def retry_on(error: BaseException) -> bool:
    """Return True for errors that a LangGraph `RetryPolicy` should retry: all but refusals.

    Use either a `RetryPolicy` or :func:`with_retry`, since their attempts multiply.
    """
    return isinstance(error, Exception) and refusal_in(error) is None
