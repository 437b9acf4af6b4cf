"""A fallback around a block: the default is used if it fails."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from switchgear.cancellation import check
from switchgear.failures.error_labels import said_by
from switchgear.patterns.answers import Answer, partials, told
from switchgear.patterns.fallback_plan import Course


class Held:
    """A holder of the value that a block sets. `answer` is its label afterwards."""

    def __init__(self, course: Course, make_default: Callable[[], Any] | None) -> None:
        self._course = course
        self._make_default = make_default
        self.value: Any = None
        self.answer: Answer[Any] | None = None

    def __enter__(self) -> "Held":
        self._before = partials()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            self.answer = told(Answer(self.value, is_partial=partials() != self._before))
            return False
        course = self._course
        if self._make_default is None or not course.answers(error):
            return False
        check(cause=error)
        self.value = self._make_default()
        self.answer = course.stand_in(self.value, "default", True, (said_by(error),), error)
        return True

    async def __aenter__(self) -> "Held":
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return self.__exit__(kind, error, traceback)
