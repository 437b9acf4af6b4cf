"""The parameters of a fallback, and the errors that it covers."""

import concurrent.futures
import copy
import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from switchgear.decorators import NotAwaited
from switchgear.failures.error_labels import is_told_to_stop
from switchgear.failures.responses import respond
from switchgear.guards import SwitchEngaged
from switchgear.journal import log_error, record
from switchgear.patterns import forks
from switchgear.patterns.answers import Answer, record_answer
from switchgear.patterns.argument_checks import check_callables, check_exceptions, check_type
from switchgear.patterns.caches import MISSING, Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback_targets import FallbackTarget
from switchgear.refusals import walk_errors

CANCELLATIONS = concurrent.futures.CancelledError
MISTAKES = (NameError, SyntaxError, ImportError)
"""Errors that only a change of the code or of the installed packages can fix."""

ErrorFilter = (
    type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]
)

TargetHook = Callable[[FallbackTarget | None, FallbackTarget, BaseException], object]

log = logging.getLogger("switchgear")


class NotGood(Exception):
    """Something answered, and `is_good` did not take it."""


@dataclass(kw_only=True)
class FallbackPlan:
    """See :class:`~switchgear.patterns.fallback.Fallback`, whose parameters these are."""

    name: str
    targets: tuple[FallbackTarget, ...]
    cache: Cache | None
    cache_key: Callable[..., Any] | None
    make_default: Callable[[], Any] | None
    on: ErrorFilter
    on_switch: bool
    is_good: Callable[[Any], bool] | None
    counters: Counters
    on_target: TargetHook | None
    exhausted: Callable[[BaseException], BaseException] | None
    answer_counts: "AnswerCounts" = field(default_factory=lambda: AnswerCounts())
    has_warned: bool = False

    def __post_init__(self) -> None:
        check_type("name", self.name, str)
        check_type("on_switch", self.on_switch, bool)
        check_type("counters", self.counters, Counters)
        check_callables(
            cache_key=self.cache_key,
            is_good=self.is_good,
            on_target=self.on_target,
            exhausted=self.exhausted,
        )
        if self.cache is not None and not isinstance(self.cache, Cache):
            raise TypeError(f"cache must have get and put, not {self.cache!r:.50}")
        if isinstance(self.on, type | tuple):
            check_exceptions("on", self.on if isinstance(self.on, tuple) else (self.on,))
        elif not callable(self.on):
            raise TypeError(f"on must be exception classes or a function, not {self.on!r:.50}")

    def covers(self, error: BaseException) -> bool:
        """Whether something may stand in for the call that raised `error`."""
        if isinstance(error, NotAwaited):
            return False  # It would be answered so always, and nobody would see why.
        return (_matches(self.on, error) or self._is_covered_switch(error)) and self.may_continue(
            error
        )

    def may_continue(self, error: BaseException) -> bool:
        """Whether anything may be asked after `error`, whoever raised it; says in the journal what
        people should know of it."""
        if isinstance(error, BaseExceptionGroup):
            return all(self.may_continue(each) for each in error.exceptions)
        if not isinstance(error, Exception) or isinstance(error, CANCELLATIONS):
            return False
        if is_told_to_stop(error):
            return False
        if not self.on_switch and _is_switch_engaged(error):
            return False
        return isinstance(error, NotGood | SwitchEngaged) or respond(error, self.name).fallback

    def _is_covered_switch(self, error: BaseException) -> bool:
        return self.on_switch and _is_switch_engaged(error)

    def selects(self, error: BaseException) -> bool:
        """Whether `error` is one of those that this is for."""
        return self.on_switch if _is_switch_engaged(error) else _matches(self.on, error)

    def record_fallback(
        self,
        value: Any,
        source: str,
        is_partial: bool,
        causes: tuple[str, ...],
        first: BaseException,
        age_seconds: float | None = None,
    ) -> Answer[Any]:
        """Count and report the answer, and return it."""
        self.answer_counts.count(source)
        self.counters.fallback()
        record("call_fallback", self.name, source=source, error=type(first).__name__)
        return record_answer(Answer(value, source, is_partial, causes, age_seconds))

    def check(self, value: Any) -> None:
        """Raises :class:`NotGood`."""
        if self.is_good is not None and not self.is_good(value):
            raise NotGood(f"{self.name}: an answer that is not good")

    def warn_cache_failure(self, error: Exception) -> None:
        """The cache fails: nobody's call does for that. Once, until it works again."""
        if not self.has_warned:
            self.has_warned = True
            log.warning(
                "switchgear: the cache of fallback %s fails: %s", self.name, type(error).__name__
            )


class AnswerCounts:
    """How many calls were answered by what. Safe to use from any thread."""

    def __init__(self) -> None:
        self.after_fork()
        forks.register(self)

    def count(self, source: str) -> None:
        with self._lock:
            self._answered[source] += 1

    def counted(self) -> dict[str, int]:
        with self._lock:
            return dict(self._answered)

    def after_fork(self) -> None:
        """In a child, count from nought."""
        self._lock = threading.RLock()
        self._answered: Counter[str] = Counter()


def is_covered_by_default(error: BaseException) -> bool:
    """Return True if a fallback without an `on` covers this error: a bug must not become an
    answer."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_covered_by_default, error.exceptions))
    return isinstance(error, Exception) and not isinstance(error, MISTAKES)


def make_default_factory(
    default: Any, factory: Callable[[], Any] | None
) -> Callable[[], Any] | None:
    """Return a factory for the default of one call, None without a default. Raises
    :class:`ValueError` if both are given, and :class:`TypeError` for a factory that can't be
    called."""
    if factory is None:
        if default is MISSING:
            return None
        # With one object for all calls, a change by one call would show up in the others.
        is_mutable = isinstance(default, list | dict | set)
        return functools.partial(copy.copy, default) if is_mutable else lambda: default
    if default is not MISSING:
        raise ValueError("a fallback has a default or default_factory, not both")
    if not callable(factory):
        raise TypeError(f"default_factory must be callable, not {factory!r:.100}")
    return factory


def _is_switch_engaged(error: BaseException) -> bool:
    """Also if an SDK has wrapped it up."""
    return any(isinstance(each, SwitchEngaged) for each in walk_errors(error))


def _matches(on: ErrorFilter, error: BaseException) -> bool:
    if isinstance(error, NotGood):
        return True
    if not isinstance(on, type | tuple):
        try:
            return bool(on(error))
        except Exception:  # The caller shall get what the call raised, and not this.
            log_error("%r could not say whether to fall back", on)
            return False
    if isinstance(error, BaseExceptionGroup) and not isinstance(error, on):
        return all(_matches(on, each) for each in error.exceptions)
    return isinstance(error, on)
