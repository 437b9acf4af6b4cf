"""Requests for bulk jobs, which retry, discard or purge the letters that match a filter."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from breakers.dead_letters.bulk.counts import ReplayCounts
from breakers.dead_letters.letters import filters, ids
from breakers.dead_letters.letters.field_edits import FieldEdit
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import LetterStream, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import samples
from breakers.dead_letters.removals import settlement
from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.live import change_notices

from . import breaker_gates, selection

KIND = "dead_letters"
TICK = "dlq.jobs"
SCOPE = settlement.SCOPE
RETRY, DISCARD, PURGE = ACTIONS = ("retry", "discard", "purge")
STEPS = (control.PlannedStep("replay"), control.PlannedStep("record"))
RATE_PER_SECOND = 50.0
MIN_RATE_PER_SECOND, MAX_RATE_PER_SECOND = 0.1, 1000.0
MAX_RETRIES = 3
COUNTING_SECONDS = 1.0
"""Time limit for counting the letters; beyond it the count is a lower bound."""
MAX_RETRIES_LIMIT = 1000
MAX_SUMMARY_LENGTH = 300
NO_COUNTS = ReplayCounts().as_dict()


def request_replay(
    *,
    stream: LetterStream,
    action: str,
    chosen: LetterFilter,
    rate_per_second: float = RATE_PER_SECOND,
    most_retries: int = MAX_RETRIES,
    waits_for: Sequence[str] | None = None,
    edit: FieldEdit | None = None,
    reason: str,
    actor: Actor,
    now: datetime,
) -> Job | Approval:
    """Create a bulk job and return it; for a purge, return the approval request instead.

    Only letters in the stream at the time of the request are removed. `waits_for` are names of
    dependencies whose open breaker holds a retry; by default, those of the origin's consumers. A
    retry changes each message by `edit`, if given.
    Raises :class:`InvalidInput`, :class:`Conflict`, :class:`Forbidden` and
    :class:`ServerUnavailable`.
    """
    actor.require(SCOPE)
    validate_limits(stream, action, rate_per_second, most_retries)
    settlement.require_authority(actor, action, stream)
    if edit is not None and action != RETRY:
        raise InvalidInput({"edit": [f"Leave it out: this doesn't apply to {action}."]})
    reason = settlement.require_reason(reason)
    dependencies: list[str] = []
    if action == RETRY:
        dependencies = (
            breaker_gates.find_consumer_dependencies(stream)
            if waits_for is None
            else breaker_gates.validate_dependencies(waits_for)
        )
    last = samples.sample_stream(stream.server, stream.name).last
    if not last:
        raise Conflict(f"There are no dead letters in {stream}.", depth=0)
    is_counted = indexer.catch_up(stream, now, seconds=COUNTING_SECONDS)
    replay = Replay(
        stream=stream,
        action=action,
        chosen=chosen.as_dict(),
        until=last,
        rate_per_second=rate_per_second,
        most_retries=most_retries,
        edit=edit.as_dict() if edit else None,
        waits_for=dependencies,
    )
    with transaction.atomic():
        settlement.require_authority(actor, action, stream)
        if action == PURGE:
            return _request_purge_approval(replay, reason, actor, now, is_counted=is_counted)
        return _start_job(replay, reason, actor, now)


def validate_limits(
    stream: LetterStream, action: str, rate_per_second: float, most_retries: int
) -> None:
    """Raise :class:`InvalidInput` for an invalid stream, action, rate or retry limit."""
    errors: dict[str, list[str]] = {}
    if stream.source == LetterStream.Source.OUTBOX:
        errors["stream"] = [
            "The outbox has no bulk jobs. Retry or discard its failed messages one by one."
        ]
    if action not in ACTIONS:
        errors["action"] = [f"Must be one of {', '.join(ACTIONS)}."]
    if not MIN_RATE_PER_SECOND <= rate_per_second <= MAX_RATE_PER_SECOND:
        errors["rate_per_second"] = [
            f"Must be from {MIN_RATE_PER_SECOND:g} to {MAX_RATE_PER_SECOND:g}."
        ]
    if not 1 <= most_retries <= MAX_RETRIES_LIMIT:
        errors["most_retries"] = [f"Must be from 1 to {MAX_RETRIES_LIMIT:,}."]
    if errors:
        raise InvalidInput(errors)


def _start_job(replay: Replay, reason: str, actor: Actor, now: datetime) -> Job:
    """Create the bulk job, its gates and its audit row.

    Raise :class:`Conflict` if an unfinished job has the same action and filter on the stream.
    """
    stream = LetterStream.objects.select_for_update().get(pk=replay.stream_id)
    same = Replay.objects.filter(stream=stream, action=replay.action, chosen=replay.chosen)
    same = same.filter(edit=replay.edit) if replay.edit else same.filter(edit__isnull=True)
    same = same.filter(job__state__in=Job.LIVE)
    if (duplicate := same.values_list("pk", flat=True).first()) is not None:
        raise Conflict(f"Job {duplicate} already does this.", job=duplicate)
    job = control.create_job(
        kind=KIND,
        subject=stream.audit_target,
        steps=STEPS,
        reason=reason,
        actor=actor,
        now=now,
        total=_count_candidates(replay),
    )
    if job is None:
        raise Conflict("This job has already started.")
    replay.job, replay.stream, replay.counts = job, stream, NO_COUNTS
    replay.save(force_insert=True)
    breaker_gates.store_gates(replay, now)
    change_notices.notify_changed("dlq", f"job:{job.pk}")
    audit.record(
        actor=actor,
        action="dead_letters.replay_asked",
        target=job.subject,
        reason=reason,
        after=_audit_summary(replay),
        now=now,
    )
    return job


def _count_candidates(replay: Replay) -> int:
    chosen = LetterFilter.from_mapping(replay.chosen)
    rows = selection.filter_index(replay.stream, chosen)
    return rows.filter(position__lte=replay.until).count()


def _request_purge_approval(
    replay: Replay, reason: str, actor: Actor, now: datetime, *, is_counted: bool
) -> Approval:
    stream, count = replay.stream, _count_candidates(replay)
    if LetterFilter.from_mapping(replay.chosen).needs_payload:
        qualifier = "up to" if is_counted else "some of at least"
    else:
        qualifier = "about" if is_counted else "at least"
    some = f"{qualifier} {count:,}"
    summary = f"Purge {stream}: {some} dead letters, kept in the archive for 30 days"
    return approvals.request_approval(
        kind=Approval.Kind.PURGE,
        target=stream.audit_target,
        summary=summary[:MAX_SUMMARY_LENGTH],
        diff={
            "server": stream.server,
            "stream": stream.name,
            "filter": replay.chosen,
            "until": ids.to_entry_id(replay.until),
            "rate_per_second": replay.rate_per_second,
            "letters": count,
        },
        reason=reason,
        actor=actor,
        now=now,
    )


def _describe_changes(requests: Sequence[Approval]) -> list[dict[str, Any]]:
    described = []
    for request in requests:
        criteria = filters.describe_criteria(request.diff["filter"])
        chosen = ", ".join(f"{label} {value}" for label, value in criteria)
        rate = f"{request.diff['rate_per_second']:g} a second"
        described.append({"letters": chosen or "all", "rate": rate})
    return described


@approvals.on_approval(
    Approval.Kind.PURGE,
    lock_first=lambda: None,  # The stream's row has to be locked after the approval's row.
    check_reason=partial(reasons.find_text_problems, called="reason"),
    describe_changes=_describe_changes,
    get_resource=lambda approval: f"stream:{approval.diff.get('stream', '')}",
)
def _purge_as_approved(approval: Approval, actor: Actor, now: datetime) -> None:
    diff = approval.diff
    replay = Replay(
        stream=LetterStream.objects.get(server=diff["server"], name=diff["stream"]),
        action=PURGE,
        chosen=LetterFilter.from_mapping(diff["filter"]).as_dict(),
        until=ids.to_position(diff["until"]),
        rate_per_second=diff["rate_per_second"],
        most_retries=MAX_RETRIES,
        approval_id=approval.pk,
    )
    _start_job(replay, approval.reason, actor, now)


def redacted_edit(replay: Replay) -> dict[str, Any] | None:
    """Return the job's edit without hidden values; None if it edits nothing."""
    if not replay.edit:
        return None
    return FieldEdit.from_mapping(replay.edit).redacted(configured_redaction())


def _audit_summary(replay: Replay) -> dict[str, Any]:
    return {
        "job": replay.pk,
        "action": replay.action,
        "filter": replay.chosen,
        "until": ids.to_entry_id(replay.until),
        "rate_per_second": replay.rate_per_second,
        "most_retries": replay.most_retries,
        "waits_for": replay.waits_for,
        **({"edit": redacted_edit(replay)} if replay.edit else {}),
        **({"approval": replay.approval_id} if replay.approval_id else {}),
    }
