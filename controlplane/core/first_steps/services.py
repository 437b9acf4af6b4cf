"""Progress of the first steps, and functions to hide the guide or show it again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.first_steps.models import FirstStepsState
from controlplane.core.page_registry import FIRST_STEPS, FirstStep, FirstStepEvidence
from controlplane.core.timed_cache import TimedCache

SCOPE = "switches:write"
"""Scope of the people who may hide the guide."""
DONE, OPEN, UNKNOWN = "done", "open", "unknown"
PROGRESS_AGE = timedelta(seconds=5)
"""Greatest age of the evidence on screens."""
_TARGET = "console:first-steps"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class StepProgress:
    """A step with its state: `done` with evidence, `open` without, `unknown` if it can't be read.

    `is_next` is True for the first step that is not done.
    """

    step: FirstStep
    number: int
    state: str
    evidence: FirstStepEvidence | None
    is_next: bool


def read_state() -> FirstStepsState:
    return FirstStepsState.objects.first() or FirstStepsState()


def read_progress(now: datetime, head: int | None = None) -> Sequence[StepProgress]:
    """Return all steps with the evidence for them, read at most `PROGRESS_AGE` ago.

    It is read again if `head`, the id of the last audit row, has changed.
    """
    return progress_cache.get(now, head)


def record_completion(progress: Sequence[StepProgress], now: datetime) -> bool:
    """Return True if all steps are done; store it, so that nothing looks for evidence again."""
    if any(one.state != DONE for one in progress):
        return False
    try:
        with transaction.atomic():
            FirstStepsState.objects.get_or_create(pk=1)
            FirstStepsState.objects.filter(pk=1, completed_at=None).update(completed_at=now)
    except DatabaseError as error:  # A standby answers pages, but takes no writes.
        log.warning("first_steps.not_recorded", error=str(error))
    return True


def hide(*, actor: Actor, now: datetime) -> None:
    """Hide the guide from the switchboard, for everybody. Raise :class:`Forbidden`."""
    actor.require(SCOPE)
    _set_hidden(now, actor, now)


def show(*, actor: Actor, now: datetime) -> None:
    """Show the guide again until all steps are done. Raise :class:`Forbidden`."""
    actor.require(SCOPE)
    _set_hidden(None, actor, now)


@transaction.atomic
def _set_hidden(hidden_at: datetime | None, actor: Actor, now: datetime) -> None:
    FirstStepsState.objects.get_or_create(pk=1)
    state = FirstStepsState.objects.select_for_update().get(pk=1)
    if bool(state.hidden_at) == bool(hidden_at):
        return
    state.hidden_at, state.hidden_by = hidden_at, actor.label if hidden_at else ""
    state.save()
    action = "first_steps.hidden" if hidden_at else "first_steps.shown"
    audit.record(actor=actor, action=action, target=_TARGET, now=now)


def _find_evidence(step: FirstStep, now: datetime) -> tuple[str, FirstStepEvidence | None]:
    try:
        evidence = step.find_evidence(now)
    except DatabaseError as error:
        log.warning("first_steps.unreadable", step=step.name, error=str(error))
        return UNKNOWN, None
    return (DONE, evidence) if evidence else (OPEN, None)


def _find_progress(now: datetime) -> list[StepProgress]:
    found: list[StepProgress] = []
    has_next = False
    for number, step in enumerate(FIRST_STEPS.values(), start=1):
        state, evidence = _find_evidence(step, now)
        is_next = state != DONE and not has_next
        has_next = has_next or is_next
        found.append(StepProgress(step, number, state, evidence, is_next))
    return found


progress_cache = TimedCache(PROGRESS_AGE, _find_progress)
