"""Events of calls, breakers, dead letters and steps, for the log and for hooks."""

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_NAMES_BY_LEVEL: Mapping[int, tuple[str, ...]] = {
    logging.DEBUG: (
        "call_retried", "call_hedged", "call_rejected", "call_fallback", "token_budget_exceeded",
        "bulkhead_full", "step_succeeded", "step_reused", "effect_repeated", "checkpoint_saved",
    ),
    logging.INFO: (
        "circuit_breaker_half_open", "circuit_breaker_closed", "llm_call_fallback",
        "job_completed", "step_compensated",
    ),
    logging.WARNING: (
        "circuit_breaker_opened", "circuit_breaker_would_open", "retry_budget_exhausted",
        "dlq_message_added", "job_stuck", "job_lost", "step_failed", "checkpoint_large",
    ),
    logging.ERROR: (
        "failure_persistent", "job_failed", "compensation_failed", "compensation_missing",
    ),
    logging.CRITICAL: ("failure_catastrophic",),
}  # fmt: skip
LEVELS: Mapping[str, int] = MappingProxyType(
    {name: level for level, names in _NAMES_BY_LEVEL.items() for name in names}
)
"""Log levels by event name. Events of single calls are logged as DEBUG: they are for hooks, metrics
and reports."""

log = logging.getLogger("switchgear")


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in the journal: its name, its subject `about`, and plain `fields`.

    The subject is, for example, a dependency, a bulkhead or a job.
    """

    name: str
    about: str
    fields: Mapping[str, Any] = field(default_factory=dict)


Hook = Callable[[Entry], object]
"""A callback for events. It runs in the thread of the event, possibly an event loop's, and must not
block. Its errors are logged."""

_hooks: tuple[Hook, ...] = ()


def add_hook(hook: Hook) -> Callable[[], None]:
    """Call `hook` with every event from now on; return a function that removes it."""
    global _hooks
    _hooks = (*_hooks, hook)

    def remove() -> None:
        global _hooks
        _hooks = tuple(each for each in _hooks if each is not hook)

    return remove


def record(name: str, about: str, **fields: Any) -> None:
    """Log an event and pass it to all hooks. Never raises."""
    level = LEVELS.get(name, logging.INFO)
    try:
        if log.isEnabledFor(level):
            text = "".join(f" {key}={escape(value)}" for key, value in fields.items())
            extra = {"event": name, "about": about, **{f"sg_{key}": fields[key] for key in fields}}
            log.log(level, "%s about=%s%s", name, escape(about), text, extra=extra)
    except Exception:  # noqa: S110 - a handler fails: to log that would fail as well.
        pass
    if _hooks:
        entry = Entry(name, about, fields)
        for hook in _hooks:
            try:
                hook(entry)
            except Exception:  # An error of a hook must not reach the caller.
                log_error("a hook failed on %s", name)


def log_error(text: str, *args: object) -> None:
    """Log `text % args` as an error, with the exception being handled. Never raises."""
    with contextlib.suppress(Exception):
        log.error(f"switchgear: {text}", *args, exc_info=True)  # noqa: LOG014 - of its callers.


def escape(value: object, most: int = 300) -> str:
    """Return the text of `value` on one line, without control characters.

    Text from outside must not look like another line of the log.
    """
    text = f"{value!s:.{most}}"
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )[:most]
