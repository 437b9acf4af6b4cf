"""How a command ends: its exit code, and why."""

from collections.abc import Mapping
from typing import Any

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
NO_RIGHTS = 4
UNREACHABLE = 5
WAITS = 6
STOPPED = 10
INTERRUPTED = 130

MEANINGS: Mapping[int, str] = {
    DONE: "done",
    FAILED: "refused or failed; with --wait or --follow: done, but not (known to be) to a good end",
    USAGE: "the command line is wrong, or something is not installed",
    NOT_FOUND: "there is no such thing",
    NO_RIGHTS: "no token, or one that may not do this",
    UNREACHABLE: "the console can't be reached, or not its database",
    WAITS: "accepted, but it waits for a second person's approval",
    STOPPED: "only `status SWITCH --exit-code`: engaged or ramping",
    INTERRUPTED: "interrupted; what was asked for before goes on",
}
TOO_MANY = 429
STRANGE = (LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""What reading a document of another shape than the API's raises."""
AWAY = "urn:switchgear:cli:unreachable"
_BY_STATUS: Mapping[int, int] = {
    401: NO_RIGHTS,
    403: NO_RIGHTS,
    404: NOT_FOUND,
    410: NOT_FOUND,
    502: UNREACHABLE,
    503: UNREACHABLE,
    504: UNREACHABLE,
}


class Ended(Exception):
    """The command ends here: with this exit code, because of this problem (RFC 9457)."""

    def __init__(self, code: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "")))
        self.code = code
        self.problem = problem
        self.retry_seconds: float | None = None
        """The console asks to be asked again then."""


def ended(code: int, slug: str, detail: str, **more: Any) -> Ended:
    """An end that is not the console's doing; its document looks as the console's do."""
    document = {"type": f"urn:switchgear:cli:{slug}", "title": MEANINGS[code].capitalize()}
    return Ended(code, {**document, "detail": detail, **more})


def refused(problem: Mapping[str, Any], status: int, retry_after: str = "") -> Ended:
    """An end because the console said so."""
    end = Ended(_BY_STATUS.get(status, FAILED), problem)
    if status == TOO_MANY:
        is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9
        end.retry_seconds = float(retry_after) if is_number else 1.0
    return end


def unfinished(end: Ended, what: str) -> Ended:
    """What was asked for is done, and only what comes after it is not: `what` says so."""
    return ended(FAILED, "not-followed", f"{what} {end}", cause=dict(end.problem))


def table() -> str:
    """The codes and what they mean, for `--help`."""
    return "\n".join(f"  {code:>3}  {said}" for code, said in MEANINGS.items())
