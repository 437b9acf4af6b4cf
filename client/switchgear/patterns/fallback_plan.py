"""The parameters of a fallback, and the rules for the errors that it covers."""

import copy
import functools
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import Any

from switchgear.decorators import NotAwaited
from switchgear.failures.error_labels import is_stop_request
from switchgear.failures.responses import respond
from switchgear.guards import SwitchEngaged
from switchgear.journal import log, record
from switchgear.patterns import forks
from switchgear.patterns.answers import Answer, record_answer
from switchgear.patterns.argument_checks import (
    check_exceptions,
    check_functions,
    check_type,
    evaluate_predicate,
)
from switchgear.patterns.caches import MISSING, Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback_targets import FallbackTarget
from switchgear.refusals import walk_errors

MISTAKES = (NameError, SyntaxError, ImportError)
"""Errors that only a change of the code or of the installed packages can fix."""

ErrorFilter = (
    type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]
)

TargetHook = Callable[[FallbackTarget | None, FallbackTarget, BaseException], object]


class NotGood(Exception):
    """Raised in place of an answer that the fallback's `is_good` rejected."""


@dataclass(kw_only=True)
class FallbackPlan:
    """The validated parameters of a :class:`~switchgear.patterns.fallback.Fallback`."""

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
        check_functions(
            may_be_class=True,
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

    @property
    def is_simple(self) -> bool:
        """True if the results of the call itself are neither checked by `is_good` nor cached."""
        return self.cache is None and self.is_good is None

    def covers(self, error: BaseException) -> bool:
        """Return True if this fallback may answer the call that raised `error`."""
        if isinstance(error, NotAwaited):
            return False  # A missing `await` is a bug, which an answer would hide.
        is_covered = _matches(self.on, error) or (self.on_switch and _is_switch_engaged(error))
        return is_covered and self.may_continue(error)

    def may_continue(self, error: BaseException) -> bool:
        """Return True if another source of answers may be tried after `error`.

        `error` is of the call itself or of a target. Persistent and catastrophic failures are
        recorded in the journal.
        """
        if isinstance(error, BaseExceptionGroup):
            return all(self.may_continue(each) for each in error.exceptions)
        if not isinstance(error, Exception) or isinstance(error, CancelledError):
            return False
        if is_stop_request(error):
            return False
        if not self.on_switch and _is_switch_engaged(error):
            return False
        return isinstance(error, NotGood | SwitchEngaged) or respond(error, self.name).fallback

    def selects(self, error: BaseException) -> bool:
        """Return True if this fallback is configured for `error`, by `on` and `on_switch`."""
        return self.on_switch if _is_switch_engaged(error) else _matches(self.on, error)

    def record_fallback(self, answer: Answer[Any], first: BaseException) -> Answer[Any]:
        """Count and record an answer given in place of the error `first`, and return it."""
        self.answer_counts.count(answer.source)
        self.counters.fallback()
        record("call_fallback", self.name, source=answer.source, error=type(first).__name__)
        return record_answer(answer)

    def check(self, value: Any) -> None:
        if self.is_good is not None and not self.is_good(value):
            raise NotGood(f"{self.name}: rejected by is_good")

    def check_plain(self, kind: str) -> None:
        """Raise :class:`TypeError` if a target must be awaited, which a plain function can't do.

        `kind` is the kind of function that the message recommends.
        """
        awaited = [target.name for target in self.targets if target.is_async]
        if awaited:
            raise TypeError(f"{', '.join(awaited)} can only be awaited: decorate {kind}")

    def check_streamable(self) -> None:
        """Raise :class:`TypeError` if the parameters can't be used with streams."""
        if self.is_good is not None:
            raise TypeError("is_good checks complete results and can't be used with a generator")
        if self.cache is not None and not self.targets and self.make_default is None:
            raise TypeError("a cache can't store streams: add a target or a default")

    def warn_cache_failure(self, error: Exception) -> None:
        """Log that the cache failed, once until it works again. The call itself goes on."""
        if not self.has_warned:
            self.has_warned = True
            log.warning(
                "switchgear: the cache of fallback %s failed: %s", self.name, type(error).__name__
            )


class AnswerCounts:
    """Numbers of calls answered by each source of a fallback. Safe to use from any thread."""

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
        self._lock = threading.RLock()
        self._answered: Counter[str] = Counter()


def is_covered_by_default(error: BaseException) -> bool:
    """Return True if a fallback without `on` covers `error`: any but a bug (`MISTAKES`)."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_covered_by_default, error.exceptions))
    return isinstance(error, Exception) and not isinstance(error, MISTAKES)


def make_default_factory(
    default: Any, factory: Callable[[], Any] | None
) -> Callable[[], Any] | None:
    """Return a function that returns the default for each call; None without a default.

    Raise :class:`ValueError` if both arguments are given, and :class:`TypeError` for a factory that
    can't be called.
    """
    if factory is None:
        if default is MISSING:
            return None
        # Calls that share one object would see each other's changes.
        is_mutable = isinstance(default, list | dict | set)
        return functools.partial(copy.copy, default) if is_mutable else lambda: default
    if default is not MISSING:
        raise ValueError("pass either default or default_factory, not both")
    if not callable(factory):
        raise TypeError(f"default_factory must be callable, not {factory!r:.100}")
    return factory


def chain_plans(first: FallbackPlan, second: FallbackPlan) -> FallbackPlan:
    """Return the plan of a fallback that tries the targets of two fallbacks in succession.

    Each target applies to the errors that its own fallback covers. The cache and the default are
    those of the second fallback, if it has them.
    """
    of_first = tuple(_limit_to_plan(first, target) for target in first.targets)
    of_second = tuple(_limit_to_plan(second, target) for target in second.targets)
    keeps = first if second.cache is None else second

    def on_target(
        before: FallbackTarget | None, after: FallbackTarget, error: BaseException
    ) -> None:
        hook = (first if after in of_first else second).on_target
        if hook is not None:
            hook(before, after, error)

    def is_good(value: Any) -> bool:
        return all(plan.is_good is None or plan.is_good(value) for plan in (first, second))

    return replace(
        first,
        targets=of_first + of_second,
        cache=keeps.cache,
        cache_key=keeps.cache_key,
        make_default=second.make_default or first.make_default,
        on=lambda error: first.selects(error) or second.selects(error),
        on_switch=first.on_switch or second.on_switch,
        is_good=is_good if first.is_good or second.is_good else None,
        on_target=on_target,
        exhausted=first.exhausted or second.exhausted,
        answer_counts=AnswerCounts(),
        has_warned=False,
    )


def _limit_to_plan(plan: FallbackPlan, target: FallbackTarget) -> FallbackTarget:
    """Return a copy of `target` that applies only to the errors that `plan` selects."""
    own: Callable[[BaseException], bool] | None = target.suits

    def suits(error: BaseException) -> bool:
        return plan.selects(error) and (own is None or own(error))

    return replace(target, suits=suits)


def _is_switch_engaged(error: BaseException) -> bool:
    """Return True if `error` is a `SwitchEngaged`, also if an SDK has wrapped it."""
    return any(isinstance(each, SwitchEngaged) for each in walk_errors(error))


def _matches(on: ErrorFilter, error: BaseException) -> bool:
    if isinstance(error, NotGood):
        return True
    if not isinstance(on, type | tuple):
        return evaluate_predicate(on, error, "whether to fall back")
    if isinstance(error, BaseExceptionGroup) and not isinstance(error, on):
        return all(_matches(on, each) for each in error.exceptions)
    return isinstance(error, on)
