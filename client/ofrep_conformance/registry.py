"""Checks and their results.

A check is a generator function that takes a :class:`~.session.Session` and yields a sentence for
each problem; it raises :class:`Skip` if it does not apply.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from .session import Session

Function = Callable[[Session], Iterator[str]]
MAX_PROBLEMS = 10
"""Most problems that a result lists."""


class Level(StrEnum):
    """The weight of a requirement, as in RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Verdict(StrEnum):
    """The result of a check; an unmet MAY is `not offered`."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_OFFERED = "not offered"


class Skip(Exception):
    """The check does not apply to this server or manifest; the message says why."""


@dataclass(frozen=True)
class Check:
    """A requirement: its id, level, sentence, source and test."""

    id: str
    level: Level
    requirement: str
    source: str
    run: Function


@dataclass(frozen=True)
class CheckResult:
    """The verdict on a check, with its problems or the reason it was skipped."""

    check: Check
    verdict: Verdict
    details: tuple[str, ...] = ()
    seconds: float = 0.0


CHECKS: dict[str, Check] = {}
"""Every check by id, in order of execution."""


def add_check(
    check_id: str, level: Level, requirement: str, source: str
) -> Callable[[Function], Function]:
    """Return a decorator that registers a check."""

    def register(function: Function) -> Function:
        if check_id in CHECKS:
            raise ValueError(f"Two checks have the id {check_id}.")
        CHECKS[check_id] = Check(check_id, level, requirement, source, function)
        return function

    return register
