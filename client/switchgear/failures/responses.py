"""The response to each class of failures: retry, count, fall back, alert."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from switchgear import journal
from switchgear.failures.classification import ClassificationRule, FailureClass, classify
from switchgear.failures.error_labels import describe_error, is_client_error

Alert = Literal["none", "people", "now"]

NOTE_INTERVAL_SECONDS = 60.0
MAX_NOTED_KEYS = 1000


@dataclass(frozen=True, slots=True)
class FailureResponse:
    """The response to a failure of one class.

    `retry`: the call may be retried; `counts`: a breaker counts the failure; `fallback`: a fallback
    may answer; `alert`: the urgency of notifying people; `advice`: the action for them.
    """

    retry: bool
    counts: bool
    fallback: bool
    alert: Alert
    advice: str


RESPONSES: Mapping[FailureClass, FailureResponse] = MappingProxyType(
    {
        FailureClass.TRANSIENT: FailureResponse(
            True, True, True, "none", "retry with backoff, within a retry budget"
        ),
        FailureClass.PERSISTENT: FailureResponse(
            False, True, True, "people", "fix the credential, the call or the code; don't retry"
        ),
        FailureClass.CASCADING: FailureResponse(
            False, False, True, "none", "isolate it with bulkheads and breakers, and shed load"
        ),
        FailureClass.CATASTROPHIC: FailureResponse(
            False, True, False, "now",
            'stop it by hand: switchgear engage segment:… --reason "…", and look into it before '
            "it is released",
        ),
    }
)  # fmt: skip


class _NoteLimiter:
    """A limiter of journal entries: allows one per key and minute. The oldest keys are dropped."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._at: dict[tuple[str, str], float] = {}

    def allows(self, key: tuple[str, str]) -> bool:
        now = time.monotonic()
        with self._lock:
            last = self._at.pop(key, None)
            is_due = last is None or now - last >= NOTE_INTERVAL_SECONDS
            self._at[key] = now if is_due or last is None else last
            while len(self._at) > MAX_NOTED_KEYS:
                del self._at[next(iter(self._at))]
        return is_due


_noted = _NoteLimiter()


def respond(
    error: BaseException, about: str, rules: tuple[ClassificationRule, ...] = ()
) -> FailureResponse:
    """Return the response to `error`, raised by the dependency `about`.

    Failures that a person must handle are recorded in the journal: persistent failures at most once
    a minute for each dependency and error class, catastrophic failures every time.
    """
    kind = classify(error, rules)
    response = RESPONSES[kind]
    name = type(error).__name__
    if kind is FailureClass.CATASTROPHIC:
        # Without the text of the error, which may contain the leaked data.
        journal.record("failure_catastrophic", about, error=name, advice=response.advice)
    elif kind is FailureClass.PERSISTENT and _noted.allows((about, name)):
        journal.record(
            "failure_persistent", about, error=describe_error(error), advice=response.advice
        )
    if response.counts and kind is not FailureClass.CATASTROPHIC and is_client_error(error):
        return replace(response, counts=False)
    return response
