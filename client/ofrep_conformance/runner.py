"""Execution of checks against a server."""

import time
from collections.abc import Collection, Iterator
from itertools import islice

from . import checks as checks  # Registers the checks.
from .manifest import Manifest
from .registry import CHECKS, MAX_PROBLEMS, Check, Level, Result, Skip, Verdict
from .session import Session, Unreachable


def run_checks(manifest: Manifest, only: Collection[str] = ()) -> Iterator[Result]:
    """Yield the result of each check, or of those in `only`."""
    session = Session(manifest)
    for check in CHECKS.values():
        if not only or check.id in only:
            yield run_check(check, session)


def run_check(check: Check, session: Session) -> Result:
    started = time.monotonic()
    problems: list[str] = []
    try:
        problems += islice(check.run(session), MAX_PROBLEMS)
    except Skip as reason:
        return Result(check, Verdict.SKIPPED, (str(reason),), time.monotonic() - started)
    except Unreachable as error:
        problems.append(str(error))
    verdict = Verdict.PASSED
    if problems:
        verdict = Verdict.NOT_OFFERED if check.level is Level.MAY else Verdict.FAILED
    return Result(check, verdict, tuple(problems), time.monotonic() - started)


def require_answer(manifest: Manifest) -> None:
    """Raise :class:`Unreachable` if nothing answers at the server's address."""
    Session(manifest).evaluate_all()
