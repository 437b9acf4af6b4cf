"""Compensation of a job: undoes the effects of its steps, the last step first."""

from dataclasses import replace
from typing import Any

from switchgear.failures.error_labels import describe_error
from switchgear.refusals import Refused
from switchgear.steps.context import Context
from switchgear.steps.drivers import Execution
from switchgear.steps.job_run import JobRun, wrap_attempt
from switchgear.steps.json_values import copy_json
from switchgear.steps.records import EffectRecord, EffectState, StepRecord, StepStatus

_MAY_HAVE_HAPPENED = (EffectState.DONE, EffectState.UNKNOWN)
_HAPPENED = (StepStatus.SUCCEEDED, StepStatus.COMPENSATION_FAILED)


def compensate_steps(
    job_run: JobRun, failed: int, reason: str | None, *, is_again: bool = False
) -> Execution[None]:
    """Compensate the completed steps, and the step at position `failed` if it may have had effects.

    `reason` is stored on the job. If a compensation fails, the other compensations continue, and a
    person has to deal with the failed one. A refused compensation pauses the job, which continues
    with that compensation later. With `is_again`, failed compensations are tried again.
    """
    record = replace(job_run.record, is_compensating=True, current=failed, failure=reason)
    yield job_run.request(job_run.save, record)
    job_run.record = record
    for position in range(min(failed, len(job_run.job.steps) - 1), -1, -1):
        row = job_run.rows.get(position)
        if row is not None and not row.is_reused:
            if is_again and row.status is StepStatus.COMPENSATION_FAILED:
                row = replace(row, compensations=0)
            elif row.status is StepStatus.COMPENSATION_FAILED:
                continue
            yield from _compensate_step(job_run, row)


def _compensate_step(job_run: JobRun, row: StepRecord) -> Execution[None]:
    step, writer = job_run.job.steps[row.position], job_run.writer(row)
    found = yield job_run.request(writer.look)
    effects = _effects_to_undo(found.effects_of(row.position))
    has_happened = row.has_returned or bool(effects)
    if row.status is StepStatus.COMPENSATED or not (row.status in _HAPPENED or has_happened):
        return
    if step.compensate is None:
        if effects:
            writer.note("compensation_missing", effects=len(effects))
        return

    def begin() -> Context:
        if writer.row.compensations >= step.max_attempts:
            raise RuntimeError(f"{step.name} was compensated {writer.row.compensations} times")
        writer.write(compensations=writer.row.compensations + 1)
        output = copy_json(row.output)
        return job_run.context(row.position, writer, output=output, is_compensating=True)

    try:
        yield job_run.request(wrap_attempt(step.compensate, begin, step.retry))
    except Refused:
        if writer.row.compensations > row.compensations:  # A refused attempt does not count.
            yield job_run.request(lambda: writer.write(compensations=writer.row.compensations - 1))
        raise
    except Exception as error:
        changes: dict[str, Any] = {
            "status": StepStatus.COMPENSATION_FAILED, "error": describe_error(error),
        }  # fmt: skip
        yield job_run.request(lambda: writer.write(**changes))
        writer.note("compensation_failed", error=type(error).__name__)
    else:
        # Read again: the compensation may have changed the state of unknown effects.
        found = yield job_run.request(writer.look)
        undone = _effects_to_undo(found.effects_of(row.position))
        rows = [replace(each, state=EffectState.UNDONE) for each in undone]
        yield job_run.request(lambda: writer.write(*rows, status=StepStatus.COMPENSATED))
        job_run.rows[row.position] = writer.row
        writer.note("step_compensated")


def _effects_to_undo(effects: tuple[EffectRecord, ...]) -> list[EffectRecord]:
    return [
        each for each in effects
        if not each.is_compensation and each.state in _MAY_HAVE_HAPPENED
    ]  # fmt: skip
