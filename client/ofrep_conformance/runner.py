"""Execution of checks against a server."""

import time
from collections.abc import Collection, Iterator
from itertools import islice

from . import checks as checks  # Registers the checks.
from .manifest import Manifest
from .registry import CHECKS, MAX_PROBLEMS, Check, CheckResult, Level, Skip, Verdict
from .session import NoResponse, Session


def run_checks(manifest: Manifest, only: Collection[str] = ()) -> Iterator[CheckResult]:
    """Yield the result of each check, or of those in `only`."""
    session = Session(manifest)
    for check in CHECKS.values():
        if not only or check.id in only:
            yield run_check(check, session)


def run_check(check: Check, session: Session) -> CheckResult:
    started = time.monotonic()
    problems: list[str] = []
    try:
        problems += islice(check.run(session), MAX_PROBLEMS)
    except Skip as reason:
        return CheckResult(check, Verdict.SKIPPED, (str(reason),), time.monotonic() - started)
    except NoResponse as error:
        problems.append(str(error))
    verdict = Verdict.PASSED
    if problems:
        verdict = Verdict.NOT_OFFERED if check.level is Level.MAY else Verdict.FAILED
    return CheckResult(check, verdict, tuple(problems), time.monotonic() - started)


def require_answer(manifest: Manifest) -> None:
    """Raise :class:`NoResponse` if no server responds at the address."""
    Session(manifest).evaluate_all()
