"""What happened to calls and breakers, by name: to the log, and to whoever wants to know.

The names are those that operators look for: `circuit_breaker_opened`, `circuit_breaker_half_open`,
`circuit_breaker_closed`, `circuit_breaker_would_open`, `call_retried`, `call_hedged`,
`call_rejected`, `call_fallback`, `llm_call_fallback`, `retry_budget_exhausted`,
`token_budget_exceeded`, `bulkhead_full`, `failure_persistent`, `failure_catastrophic`,
`dlq_message_added`, and those of steps.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

LEVELS: Mapping[str, int] = MappingProxyType(
    {
        "circuit_breaker_opened": logging.WARNING,
        "circuit_breaker_half_open": logging.INFO,
        "circuit_breaker_closed": logging.INFO,
        "circuit_breaker_would_open": logging.WARNING,
        "call_retried": logging.DEBUG,
        "call_hedged": logging.DEBUG,
        "call_rejected": logging.DEBUG,
        "call_fallback": logging.DEBUG,
        "llm_call_fallback": logging.INFO,
        "retry_budget_exhausted": logging.WARNING,
        "token_budget_exceeded": logging.DEBUG,
        "bulkhead_full": logging.DEBUG,
        "failure_persistent": logging.ERROR,
        "failure_catastrophic": logging.CRITICAL,
        "dlq_message_added": logging.WARNING,
        "job_completed": logging.INFO,
        "job_failed": logging.ERROR,
        "job_stuck": logging.WARNING,
        "job_lost": logging.WARNING,
        "step_succeeded": logging.DEBUG,
        "step_failed": logging.WARNING,
        "step_reused": logging.DEBUG,
        "effect_repeated": logging.DEBUG,
        "checkpoint_saved": logging.DEBUG,
        "checkpoint_large": logging.WARNING,
        "step_compensated": logging.INFO,
        "compensation_failed": logging.ERROR,
        "compensation_missing": logging.ERROR,
    }
)
"""What happens with many calls at once is for hooks, metrics and reports, not for the log."""

log = logging.getLogger("switchgear")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened: `name`, what it is `about` (a dependency, a bulkhead, a job), and
    what else is known, as plain values."""

    name: str
    about: str
    fields: Mapping[str, Any] = field(default_factory=dict)


Hook = Callable[[Entry], object]
"""Is called in the thread in which it happened, possibly an event loop's: it must not wait. What it
raises is logged."""

_hooks: tuple[Hook, ...] = ()


def add_hook(hook: Hook) -> Callable[[], None]:
    """Tell `hook` of everything from now on; returns what ends that."""
    global _hooks
    _hooks = (*_hooks, hook)

    def remove() -> None:
        global _hooks
        _hooks = tuple(each for each in _hooks if each is not hook)

    return remove


def note(name: str, about: str, **fields: Any) -> None:
    """It has happened. Never raises."""
    level = LEVELS.get(name, logging.INFO)
    try:
        if log.isEnabledFor(level):
            said = "".join(f" {key}={plain(value)}" for key, value in fields.items())
            extra = {"event": name, "about": about, **{f"sg_{key}": fields[key] for key in fields}}
            log.log(level, "%s about=%s%s", name, plain(about), said, extra=extra)
    except Exception:  # noqa: S110 - a handler fails: to log that would fail as well.
        pass
    if _hooks:
        entry = Entry(name, about, fields)
        for hook in _hooks:
            try:
                hook(entry)
            except Exception:  # Somebody else's, and not the caller's business.
                complain("a hook failed on %s", name)


def complain(text: str, *args: object) -> None:
    """To the log, with the error that is being handled: something that was handed to us fails.
    Never raises, as a handler of the log may."""
    with contextlib.suppress(Exception):
        log.error(f"switchgear: {text}", *args, exc_info=True)  # noqa: LOG014 - of its callers.


def plain(value: object, most: int = 300) -> str:
    """What it says, on one line and without what a terminal obeys: it may come from elsewhere, and
    must not look like a line of the log of its own."""
    text = f"{value!s:.{most}}"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)[:most]


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
