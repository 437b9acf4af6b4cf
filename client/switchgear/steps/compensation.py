"""A job goes backward: what its steps did to the outside is undone, the last one first."""

from dataclasses import replace
from typing import Any

from switchgear.failures.error_labels import said_by
from switchgear.refusals import Refused
from switchgear.steps.context import Context
from switchgear.steps.drivers import Course
from switchgear.steps.job_run import Running, around
from switchgear.steps.json_values import copied
from switchgear.steps.records import EffectRecord, EffectState, StepRecord, StepStatus
from switchgear.steps.step_writer import Page

_MAY_HAVE_HAPPENED = (EffectState.DONE, EffectState.UNKNOWN)
_HAPPENED = (StepStatus.SUCCEEDED, StepStatus.COMPENSATION_FAILED)


def backward(
    running: Running, failed: int, reason: str | None, *, is_again: bool = False
) -> Course[None]:
    """Compensate the steps that succeeded, and the one at `failed` if it may have done something;
    `is_again` those too whose compensation failed. `reason` says why, and is kept.

    A compensation that fails is for people; the others go on. One that was refused ends the run:
    the job is to be paused, and goes on with it later.
    """
    record = replace(running.record, is_compensating=True, current=failed, failure=reason)
    yield running.ask(running.keep, record)
    running.record = record
    for position in range(min(failed, len(running.job.steps) - 1), -1, -1):
        row = running.rows.get(position)
        if row is not None and not row.is_reused:
            if is_again and row.status is StepStatus.COMPENSATION_FAILED:
                row = replace(row, compensations=0)
            elif row.status is StepStatus.COMPENSATION_FAILED:
                continue
            yield from _undo(running, row)


def _undo(running: Running, row: StepRecord) -> Course[None]:
    step, page = running.job.steps[row.position], running.page(row)
    found = yield running.ask(page.look)
    effects = _to_undo(found.effects_of(row.position))
    has_happened = row.has_returned or bool(effects)
    if row.status is StepStatus.COMPENSATED or not (row.status in _HAPPENED or has_happened):
        return
    if step.compensate is None:
        if effects:
            running.note("compensation_missing", row, effects=len(effects))
        return

    def begin() -> Context:
        if page.row.compensations >= step.max_attempts:
            raise RuntimeError(f"{step.name} was compensated {page.row.compensations} times")
        page.write(compensations=page.row.compensations + 1)
        output = copied(row.output)
        return running.context(row.position, page, output=output, is_compensating=True)

    try:
        yield running.ask(around(step.compensate, begin, step.retry))
    except Refused:
        if page.row.compensations > row.compensations:  # That one was none.
            yield running.ask(lambda: page.write(compensations=page.row.compensations - 1))
        raise
    except Exception as error:
        changes: dict[str, Any] = {
            "status": StepStatus.COMPENSATION_FAILED, "error": said_by(error),
        }  # fmt: skip
        yield running.ask(lambda: page.write(**changes))
        running.note("compensation_failed", row, error=type(error).__name__)
    else:
        yield from _undone(running, page)


def _undone(running: Running, page: Page) -> Course[None]:
    """Its effects as they are now: a compensation may have learnt about unknown ones."""
    found = yield running.ask(page.look)
    effects = _to_undo(found.effects_of(page.row.position))
    rows = [replace(each, state=EffectState.UNDONE) for each in effects]
    yield running.ask(lambda: page.write(*rows, status=StepStatus.COMPENSATED))
    running.rows[page.row.position] = page.row
    running.note("step_compensated", page.row)


def _to_undo(effects: tuple[EffectRecord, ...]) -> list[EffectRecord]:
    return [
        each for each in effects
        if not each.is_compensation and each.state in _MAY_HAVE_HAPPENED
    ]  # fmt: skip
