"""What ramps have waiting for a person.

One that could not be taken back, one that waits for approval, and one that was forgotten while it
was paused are told by jobs and by approvals already.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.core.durations import readable
from controlplane.core.jobs import attention as jobs
from controlplane.core.jobs.models import Job
from controlplane.core.page_registry import AttentionItem, attention_source
from switches.models import Ramp

from . import descriptions

PAUSED_LONG = timedelta(hours=1)
MAX_ITEMS = 100


def without_data(_now: datetime) -> QuerySet[Ramp]:
    return _under_way().filter(job__state=Job.State.HOLDING, blind_since__isnull=False)


def long_paused(now: datetime) -> QuerySet[Ramp]:
    return _under_way().filter(
        job__state=Job.State.PAUSED,
        job__paused_at__lte=now - PAUSED_LONG,
        job__paused_at__gte=now - jobs.FORGOTTEN,
    )


@attention_source(12, only_if=without_data)
def holding(now: datetime) -> Sequence[AttentionItem]:
    """Ramps that have no data to go on by; at `due_at` they go back by themselves.

    One that waits for a person alone is not among them: that person finds the approval.
    """
    rows = without_data(now)
    return [
        AttentionItem(
            kind="ramp_holding",
            severity="warning",
            title=f"The ramp of {ramp.switch_id} holds at {_share(ramp)}",
            detail=f"{ramp.job.hold_reason} Let it go on or abort it; else it goes back.",
            path=_path(ramp),
            since=min(since, now),
            due_at=since + timedelta(seconds=_step(ramp)["max_hold_seconds"]),
        )
        for ramp in rows.order_by("blind_since", "pk")[:MAX_ITEMS]
        if (since := ramp.blind_since) is not None
    ]


@attention_source(35, only_if=long_paused)
def paused(now: datetime) -> Sequence[AttentionItem]:
    """Ramps that somebody paused more than an hour ago, until jobs tell of them as forgotten."""
    rows = long_paused(now)
    return [
        AttentionItem(
            kind="ramp_paused",
            severity="warning",
            title=f"The ramp of {ramp.switch_id} is paused at {_share(ramp)} "
            f"for {readable(now - (ramp.job.paused_at or now))}",
            detail=f"Resume it, or abort it. {ramp.job.hold_reason}",
            path=_path(ramp),
            since=ramp.job.paused_at or now,
        )
        for ramp in rows.order_by("job__paused_at", "pk")[:MAX_ITEMS]
    ]


def _under_way() -> QuerySet[Ramp]:
    return Ramp.objects.filter(live=True).select_related("job", "episode")


def _step(ramp: Ramp) -> Mapping[str, float]:
    found: Mapping[str, float] = ramp.plan[ramp.job.step_index]
    return found


def _share(ramp: Ramp) -> str:
    at = f"step {ramp.job.step_index + 1} of {len(ramp.plan)}"
    return f"{descriptions.percent(ramp.episode.allow_percent)}, {at}"


def _path(ramp: Ramp) -> str:
    return f"/ramps/{ramp.pk}/"
