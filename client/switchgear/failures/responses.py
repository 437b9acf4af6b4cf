"""What to do about each class of failures."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from switchgear import journal
from switchgear.failures.classification import FailureClass, Rule, classify
from switchgear.failures.error_labels import is_client_error, said_by

Alert = Literal["none", "people", "now"]

NOTED_EVERY_SECONDS = 60.0
MAX_RECORDED = 1000


@dataclass(frozen=True, slots=True)
class Response:
    """Whether to `retry`, whether a breaker `counts` it, whether a `fallback` may be given, whom to
    `alert`, and what people should do."""

    retry: bool
    counts: bool
    fallback: bool
    alert: Alert
    advice: str


RESPONSES: Mapping[FailureClass, Response] = MappingProxyType(
    {
        FailureClass.TRANSIENT: Response(
            True, True, True, "none", "it is tried again, with growing pauses and within a budget"
        ),
        FailureClass.PERSISTENT: Response(
            False, True, True, "people", "mend the credential, the call or the code; retries don't"
        ),
        FailureClass.CASCADING: Response(
            False, False, True, "none", "isolate it: let bulkheads and breakers refuse, shed load"
        ),
        FailureClass.CATASTROPHIC: Response(
            False, True, False, "now",
            'stop it by hand: switchgear engage segment:… --reason "…", and look into it before '
            "it is released",
        ),
    }
)  # fmt: skip


class _Seldom:
    """Lets each key through once a minute. Bounded: what is oldest is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._at: dict[tuple[str, str], float] = {}

    def lets(self, key: tuple[str, str]) -> bool:
        now = self._clock()
        with self._lock:
            last = self._at.pop(key, None)
            is_due = last is None or now - last >= NOTED_EVERY_SECONDS
            self._at[key] = now if is_due or last is None else last
            while len(self._at) > MAX_RECORDED:
                del self._at[next(iter(self._at))]
        return is_due


_noted = _Seldom()


def respond(error: BaseException, about: str, rules: tuple[Rule, ...] = ()) -> Response:
    """What to do about `error`, which came of the dependency `about`.

    Says in the journal what people should know: a persistent failure at most once a minute for
    each dependency and class of errors, a catastrophic one every time.
    """
    kind = classify(error, rules)
    response = RESPONSES[kind]
    name = type(error).__name__
    if kind is FailureClass.CATASTROPHIC:
        # Not what it says: that may be what has leaked.
        journal.record("failure_catastrophic", about, error=name, advice=response.advice)
    elif kind is FailureClass.PERSISTENT and _noted.lets((about, name)):
        journal.record("failure_persistent", about, error=said_by(error), advice=response.advice)
    if response.counts and kind is not FailureClass.CATASTROPHIC and is_client_error(error):
        return replace(response, counts=False)
    return response
