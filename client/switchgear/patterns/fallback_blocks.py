"""A fallback around a block: the default is used if it fails."""

from collections.abc import Callable
from typing import Any

from switchgear.cancellation import check
from switchgear.failures.error_labels import describe_error
from switchgear.patterns.answers import Answer, partial_count, record_answer
from switchgear.patterns.fallback_plan import FallbackPlan


class FallbackBlock:
    """A `with` block whose `value` becomes the default if the block fails.

    `answer` is the label of the value, set when the block ends.
    """

    def __init__(self, plan: FallbackPlan, make_default: Callable[[], Any] | None) -> None:
        self._plan = plan
        self._make_default = make_default
        self.value: Any = None
        self.answer: Answer[Any] | None = None

    def __enter__(self) -> "FallbackBlock":
        self._before = partial_count()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        if error is None:
            self.answer = record_answer(
                Answer(self.value, is_partial=partial_count() != self._before)
            )
            return False
        plan = self._plan
        if self._make_default is None or not plan.covers(error):
            return False
        check(cause=error)
        self.value = self._make_default()
        self.answer = plan.record_fallback(
            self.value, "default", True, (describe_error(error),), error
        )
        return True

    async def __aenter__(self) -> "FallbackBlock":
        return self.__enter__()

    async def __aexit__(self, *raised: Any) -> bool:
        return self.__exit__(*raised)
