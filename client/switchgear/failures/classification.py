"""Which of the four classes a failure is of: what passes, what stays, what spreads, and what must
be stopped by a person."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from switchgear.failures.error_labels import HOPELESS, words_of
from switchgear.refusals import refusal_in, walk_errors


class FailureClass(StrEnum):
    TRANSIENT = "transient"
    """A blip of the network, a rate limit, a timeout: it passes."""
    PERSISTENT = "persistent"
    """A changed API or schema, an expired credential: it stays until somebody acts."""
    CASCADING = "cascading"
    """Caused by what protects something else, or by our own retries: it spreads."""
    CATASTROPHIC = "catastrophic"
    """A leak, a breach, a violated policy: it is to be stopped by a person."""


SEVERITY = tuple(FailureClass)
"""The worst one last."""


class Catastrophic(Exception):
    """Derive your own from this: what says that data leaks, or that a policy is violated."""


@dataclass(frozen=True, slots=True)
class Retried:
    """What a retry did before it gave an error up. `why` is "attempts", "budget", "deadline" or
    "retry_after"."""

    attempts: int
    seconds: float
    why: str


Rule = Callable[[BaseException], FailureClass | None]
"""Says the class of an error, or None if it does not know."""

TRANSIENT_WORDS: frozenset[str | int] = frozenset(
    {
        408, 425, 429, 500, 502, 503, 504, 529, "timeout", "connection_error",
        "rate_limit_exceeded", "model_overloaded",
    }
)  # fmt: skip

_catastrophic: tuple[type[BaseException], ...] = (Catastrophic,)


def register(*kinds: type[BaseException]) -> None:
    """Errors of these classes are catastrophic from now on."""
    global _catastrophic
    _catastrophic = (*_catastrophic, *kinds)


def classify(error: BaseException, rules: tuple[Rule, ...] = ()) -> FailureClass:
    """The class of `error`: the first of `rules` that knows decides, whoever raises is left out.

    An error that nothing is known of is persistent: to try a mistake again does not mend it. A
    group is of the worst class in it.
    """
    for rule in rules:
        try:
            found = rule(error)
        except Exception:  # noqa: S112 - a rule that fails does not know.
            continue
        if found is not None:
            return found
    if is_catastrophic(error):
        return FailureClass.CATASTROPHIC
    if _spreads(error):
        return FailureClass.CASCADING
    if isinstance(error, BaseExceptionGroup):
        return max((classify(each, rules) for each in error.exceptions), key=SEVERITY.index)
    words = words_of(error)
    if _is_of_certificate(error):
        return FailureClass.PERSISTENT
    if words & TRANSIENT_WORDS and not words & HOPELESS:
        return FailureClass.TRANSIENT
    return FailureClass.PERSISTENT


def retried(error: BaseException) -> Retried | None:
    """What a retry did before it gave `error` up; None if none did."""
    found = getattr(error, "switchgear_retried", None)
    return found if isinstance(found, Retried) else None


def is_catastrophic(error: BaseException) -> bool:
    """Whether this, or what it was caused by, or anything in a group, is to be stopped by a
    person."""
    return any(isinstance(each, _catastrophic) for each in walk_errors(error, contexts=True))


def _is_of_certificate(error: BaseException) -> bool:
    """Return True if a certificate was rejected. Nothing raises that before ssl is imported."""
    refused = getattr(sys.modules.get("ssl"), "SSLCertVerificationError", ())
    return any(isinstance(each, refused) for each in walk_errors(error, contexts=True))


def _spreads(error: BaseException) -> bool:
    if refusal_in(error) is not None or getattr(error, "caused_by_retrying", False) is True:
        return True
    gave_up = retried(error)
    return gave_up is not None and gave_up.why in ("budget", "deadline")
