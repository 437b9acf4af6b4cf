"""Exit codes, and the exceptions that end a command."""

from collections.abc import Mapping
from typing import Any

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
NO_RIGHTS = 4
UNREACHABLE = 5
NEEDS_APPROVAL = 6
STOPPED = 10
INTERRUPTED = 130

MEANINGS: Mapping[int, str] = {
    DONE: "done",
    FAILED: "refused or failed; with --wait or --follow: done, but not (known to be) to a good end",
    USAGE: "the command line is wrong, or something is not installed",
    NOT_FOUND: "there is no such thing",
    NO_RIGHTS: "no token, or one that may not do this",
    UNREACHABLE: "the console can't be reached, or not its database",
    NEEDS_APPROVAL: "accepted, but it waits for a second person's approval",
    STOPPED: "only `status SWITCH --exit-code`: engaged or ramping",
    INTERRUPTED: "interrupted; what was asked for before goes on",
}
TOO_MANY_REQUESTS = 429
MISREAD_ERRORS = (LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""Errors of reading a document whose shape is not the API's."""
UNREACHABLE_TYPE = "urn:switchgear:cli:unreachable"
_BY_STATUS: Mapping[int, int] = {
    401: NO_RIGHTS,
    403: NO_RIGHTS,
    404: NOT_FOUND,
    410: NOT_FOUND,
    502: UNREACHABLE,
    503: UNREACHABLE,
    504: UNREACHABLE,
}


class CommandExit(Exception):
    """Ends the command with an exit code, because of a problem (RFC 9457)."""

    def __init__(self, code: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "")))
        self.code = code
        self.problem = problem
        self.retry_seconds: float | None = None
        """The delay after which the console allows a retry."""


def make_exit(code: int, slug: str, detail: str, **more: Any) -> CommandExit:
    """Return an exit with a problem document of this program, shaped like the console's."""
    document = {"type": f"urn:switchgear:cli:{slug}", "title": MEANINGS[code].capitalize()}
    return CommandExit(code, {**document, "detail": detail, **more})


def make_problem_exit(
    problem: Mapping[str, Any], status: int, retry_after: str = ""
) -> CommandExit:
    """Return the exit for a problem document of the console."""
    end = CommandExit(_BY_STATUS.get(status, FAILED), problem)
    if status == TOO_MANY_REQUESTS:
        is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9
        end.retry_seconds = float(retry_after) if is_number else 1.0
    return end


def make_unfinished_exit(end: CommandExit, what: str) -> CommandExit:
    """Return the exit for a change that was made but not followed; `what` says so."""
    return make_exit(FAILED, "not-followed", f"{what} {end}", cause=dict(end.problem))


def format_exit_codes() -> str:
    """Return the table of exit codes for `--help`."""
    return "\n".join(f"  {code:>3}  {said}" for code, said in MEANINGS.items())
