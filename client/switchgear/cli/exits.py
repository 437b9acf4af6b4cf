"""Exit codes of the command, the exception that ends it, and its error messages."""

import re
import shlex
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
DIFFERENT = 11
INTERRUPTED = 130

MEANINGS: Mapping[int, str] = {
    DONE: "done",
    FAILED: "refused or failed; with --wait or --follow: started, but failed or unconfirmed",
    USAGE: "invalid command line, or a missing package",
    NOT_FOUND: "not found",
    NO_RIGHTS: "no token, or a token without permission",
    UNREACHABLE: "the console or its database can't be reached",
    NEEDS_APPROVAL: "accepted; waiting for a second person's approval",
    STOPPED: "only `status SWITCH --exit-code`: engaged or ramping",
    DIFFERENT: "only `config diff`: loading the files would change something",
    INTERRUPTED: "interrupted; changes already requested continue",
}
TOO_MANY_REQUESTS = 429
MISREAD_ERRORS = (LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""Errors raised by code that reads a document of an unexpected shape."""
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
OPTIONS: Mapping[str, str] = {
    "reason": "--reason",
    "justification": "--reason",
    "comment": "--comment",
    "expires_in": "--for",
    "expires_at": "--until",
    "on_expiry": "--on-expiry",
    "order": "--withdraw",
    "break_glass": "--break-glass",
    "max_hold_seconds": "--max-hold",
    "edited_fields": "--edit",
    "rate_per_second": "--rate",
    "plan": "--plan",
    "step_index": "--step",
}
"""Command-line option by the API field that it sets."""
OUTAGE_HINT = (
    "Services keep using their last snapshot. To stop a switch without the console: switchgear kill"
    " SWITCH --reason … On the server you can use `manage.py killswitch`."
)


class CommandExit(Exception):
    """Raised to end a command with an exit code and a problem document (RFC 9457)."""

    def __init__(self, code: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "")))
        self.code = code
        self.problem = problem
        self.retry_seconds: float | None = None
        """The delay after which the console allows a retry; None if it named none."""


def make_exit(code: int, slug: str, detail: str, **more: Any) -> CommandExit:
    """Return the exception that ends the command with `code` and a problem found by the CLI itself.

    The type of the problem document ends with `slug`.
    """
    document = {"type": f"urn:switchgear:cli:{slug}", "title": MEANINGS[code].capitalize()}
    return CommandExit(code, {**document, "detail": detail, **more})


def make_usage_exit(detail: str) -> CommandExit:
    return make_exit(USAGE, "usage", detail)


def make_problem_exit(
    problem: Mapping[str, Any], status: int, retry_after: str = ""
) -> CommandExit:
    """Return the exception that ends the command with a problem document sent by the console."""
    end = CommandExit(code_for_status(status), problem)
    if status == TOO_MANY_REQUESTS:
        is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9
        end.retry_seconds = float(retry_after) if is_number else 1.0
    return end


def code_for_status(status: int) -> int:
    """Return the exit code for an error status of the console or a data plane."""
    return _BY_STATUS.get(status, FAILED)


def format_exit_codes() -> str:
    """Return the table of exit codes for `--help`."""
    return "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())


def describe_problem(problem: Mapping[str, Any], code: int) -> list[str]:
    """Return sentences for the user: the first names the problem, the others suggest what to do."""
    errors = problem.get("errors")
    if isinstance(errors, Mapping) and errors:
        found = [f"{_option(str(name))}: {_join_texts(texts)}" for name, texts in errors.items()]
        return found if len(found) == 1 else [f"{len(found)} fields are wrong.", *found]
    detail = str(problem.get("detail") or problem.get("title") or "The request failed.")
    return [detail, *_next_steps(problem, code)]


def _next_steps(problem: Mapping[str, Any], code: int) -> list[str]:
    if refusals := problem.get("refusals"):
        rules = [one.get("rule") for one in refusals if isinstance(one, Mapping)]
        options = " ".join(f"--break-glass {shlex.quote(str(rule))}" for rule in rules)
        return [
            f"To override: add {options}",
            "An override gets a short expiry, is announced, and must be reviewed by someone else.",
        ]
    if isinstance(failed := problem.get("failed"), list):  # Of several data planes.
        return [f"{one['url']}: {one['detail']}" for one in failed]
    if who_may := _describe_who_may(problem):
        return [who_may]
    if problem.get("status") == 401:
        return ["Set SWITCHGEAR_TOKEN (or --token-file) to a valid token."]
    if isinstance(problem.get("episode"), Mapping) and problem.get("switch"):
        switch = problem["switch"]
        return [f"To keep it engaged for longer: switchgear extend {switch} --for 24h --reason …"]
    away = problem.get("status") == 503 or problem.get("type") == UNREACHABLE_TYPE
    if code == UNREACHABLE and away:
        return [OUTAGE_HINT]
    return []


def _describe_who_may(problem: Mapping[str, Any]) -> str:
    """Return who may do what the console refused, and who is on call for its owner, or ""."""
    names, on_call = problem.get("who_may"), problem.get("on_call")
    texts = [f"Who may: {', '.join(map(str, names))}."] if names and isinstance(names, list) else []
    return " ".join([*texts, *([f"On call: {on_call}."] if on_call else [])])


def _option(field: str) -> str:
    """Return the command-line option for a field of the API, such as `--plan (plan[0].percent)`."""
    name = re.split(r"[.\[]", field, maxsplit=1)[0]
    option = OPTIONS.get(name)
    if option is None:
        return field
    return option if name == field else f"{option} ({field})"


def _join_texts(texts: Any) -> str:
    return " ".join(map(str, texts)) if isinstance(texts, list) else str(texts)
