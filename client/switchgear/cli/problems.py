"""Describes problems in sentences that say what to do next."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from switchgear.cli import exits

OPTIONS: Mapping[str, str] = {
    "reason": "--reason",
    "justification": "--reason",
    "comment": "--comment",
    "expires_in": "--for",
    "expires_at": "--until",
    "on_expiry": "--on-expiry",
    "break_glass": "--break-glass",
    "max_hold_seconds": "--max-hold",
    "edited_fields": "--edit",
    "rate_per_second": "--rate",
    "plan": "--plan",
    "step_index": "--step",
}
"""The options that stand for fields of the API."""
OUTAGE_HINT = (
    "Services go on by the last snapshot they have. On the server itself there is"
    " `manage.py killswitch`."
)


def describe_problem(problem: Mapping[str, Any], code: int) -> list[str]:
    """Return sentences; the first one names the problem."""
    errors = problem.get("errors")
    if isinstance(errors, Mapping) and errors:
        found = [f"{_option(str(name))}: {_join_texts(texts)}" for name, texts in errors.items()]
        return found if len(found) == 1 else [f"{len(found)} things are wrong.", *found]
    detail = str(problem.get("detail") or problem.get("title") or "It failed.")
    return [detail, *_next_steps(problem, code)]


def _next_steps(problem: Mapping[str, Any], code: int) -> list[str]:
    if refusals := problem.get("refusals"):
        rules = [one.get("rule") for one in refusals if isinstance(one, Mapping)]
        options = " ".join(f"--break-glass {shlex.quote(str(rule))}" for rule in rules)
        return [
            f"To go on all the same: add {options}",
            "It ends soon then, everybody is told, and somebody else has to review it.",
        ]
    if problem.get("status") == 401:
        return ["Set SWITCHGEAR_TOKEN (or --token-file) to a token that is valid."]
    if isinstance(problem.get("episode"), Mapping) and problem.get("switch"):
        switch = problem["switch"]
        return [f"To keep it engaged for longer: switchgear extend {switch} --for 24h --reason …"]
    away = problem.get("status") == 503 or problem.get("type") == exits.UNREACHABLE_TYPE
    if code == exits.UNREACHABLE and away:
        return [OUTAGE_HINT]
    return []


def _option(field: str) -> str:
    """Return the option of a field: `plan[0].percent` belongs to `--plan`."""
    name = re.split(r"[.\[]", field, maxsplit=1)[0]
    option = OPTIONS.get(name)
    if option is None:
        return field
    return option if name == field else f"{option} ({field})"


def _join_texts(texts: Any) -> str:
    return " ".join(map(str, texts)) if isinstance(texts, list) else str(texts)
