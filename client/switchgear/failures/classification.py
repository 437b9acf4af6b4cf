"""The four classes of failures: transient, persistent, cascading and catastrophic."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from switchgear.failures.error_labels import NON_RETRYABLE_LABELS, error_labels
from switchgear.refusals import refusal_in, walk_errors


class FailureClass(StrEnum):
    TRANSIENT = "transient"
    """Passes by itself: a network glitch, a rate limit, a timeout."""
    PERSISTENT = "persistent"
    """Stays until it is fixed: a changed API or schema, an expired credential."""
    CASCADING = "cascading"
    """Spreads: caused by the protection of another service, or by our own retries."""
    CATASTROPHIC = "catastrophic"
    """Must be stopped by a person: a leak, a breach, a violated policy."""


CLASSES_BY_SEVERITY = tuple(FailureClass)


class Catastrophic(Exception):
    """The base class for errors that report a data leak or a violated policy."""


@dataclass(frozen=True, slots=True)
class RetrySummary:
    """The number of attempts of a retry that gave up, and the seconds that they took.

    `why` is the reason to give up, such as "attempts" or "budget".
    """

    attempts: int
    seconds: float
    why: str


ClassificationRule = Callable[[BaseException], FailureClass | None]
"""A function that returns the class of an error, or None to leave it to the next rule."""

TRANSIENT_LABELS: frozenset[str | int] = frozenset(
    {
        408, 425, 429, 500, 502, 503, 504, 529, "timeout", "connection_error",
        "rate_limit_exceeded", "model_overloaded",
    }
)  # fmt: skip

_catastrophic: tuple[type[BaseException], ...] = (Catastrophic,)


def register(*kinds: type[BaseException]) -> None:
    """Classify errors of these exception classes as catastrophic from now on."""
    global _catastrophic
    _catastrophic = (*_catastrophic, *kinds)


def classify(error: BaseException, rules: tuple[ClassificationRule, ...] = ()) -> FailureClass:
    """Return the failure class of `error`.

    The first of `rules` that returns a class decides; a rule that raises is skipped. An unknown
    error is persistent, since repeating a mistake does not fix it. An exception group has the worst
    class of its members.
    """
    for rule in rules:
        try:
            value = rule(error)
        except Exception:  # noqa: S112 - a rule that fails does not know.
            continue
        if value is not None:
            return value
    if is_catastrophic(error):
        return FailureClass.CATASTROPHIC
    if _is_cascading(error):
        return FailureClass.CASCADING
    if isinstance(error, BaseExceptionGroup):
        return max(
            (classify(each, rules) for each in error.exceptions), key=CLASSES_BY_SEVERITY.index
        )
    labels = error_labels(error)
    if _is_certificate_error(error):
        return FailureClass.PERSISTENT
    if labels & TRANSIENT_LABELS and not labels & NON_RETRYABLE_LABELS:
        return FailureClass.TRANSIENT
    return FailureClass.PERSISTENT


def retry_summary(error: BaseException) -> RetrySummary | None:
    """Return the summary of the retry that gave up with `error`; None if it was not retried."""
    value = getattr(error, "switchgear_retried", None)
    return value if isinstance(value, RetrySummary) else None


def is_catastrophic(error: BaseException) -> bool:
    """Return True if `error`, a cause of it, or a member of it as a group is catastrophic."""
    return any(isinstance(each, _catastrophic) for each in walk_errors(error, contexts=True))


def _is_certificate_error(error: BaseException) -> bool:
    """Return True if a TLS certificate was rejected; always False if `ssl` was never imported."""
    refused = getattr(sys.modules.get("ssl"), "SSLCertVerificationError", ())
    return any(isinstance(each, refused) for each in walk_errors(error, contexts=True))


def _is_cascading(error: BaseException) -> bool:
    if refusal_in(error) is not None or getattr(error, "caused_by_retrying", False) is True:
        return True
    summary = retry_summary(error)
    return summary is not None and summary.why in ("budget", "deadline")
