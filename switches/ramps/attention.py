"""Items of the attention page: live ramps that hold without data, or are paused for over an hour.

The jobs and approvals apps list the other ramps that need a person: failed compensations, pending
approvals, and ramps paused for a day.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.core.actions import Action
from controlplane.core.durations import format_readable
from controlplane.core.jobs import attention as jobs
from controlplane.core.jobs.models import Job
from controlplane.core.page_registry import (
    POST,
    AttentionAction,
    AttentionItem,
    attention_rows,
)
from controlplane.core.roles import Power
from switches.models import Ramp

from . import descriptions

PAUSED_LONG = timedelta(hours=1)
MAX_ITEMS = 100


def find_ramps_without_data(_now: datetime) -> QuerySet[Ramp]:
    rows = _find_live_ramps().filter(job__state=Job.State.HOLDING, blind_since__isnull=False)
    return rows.order_by("blind_since", "pk")[:MAX_ITEMS]


def find_long_paused_ramps(now: datetime) -> QuerySet[Ramp]:
    rows = _find_live_ramps().filter(
        job__state=Job.State.PAUSED,
        job__paused_at__lte=now - PAUSED_LONG,
        job__paused_at__gte=now - jobs.FORGOTTEN,
    )
    return rows.order_by("job__paused_at", "pk")[:MAX_ITEMS]


@attention_rows(12, find_ramps_without_data)
def list_holding_ramps(now: datetime, found: Sequence[Ramp]) -> Sequence[AttentionItem]:
    """Return an item per ramp that holds without data; at `due_at` its switch is engaged again."""
    return [
        AttentionItem(
            kind="ramp_holding",
            severity="warning",
            title=f"The ramp of {ramp.switch_id} holds at {_describe_share(ramp)}",
            detail=f"{ramp.job.hold_reason} Continue or abort it; otherwise its switch is engaged "
            "again.",
            path=f"/ramps/{ramp.pk}/",
            since=min(since, now),
            due_at=since + timedelta(seconds=ramp.plan[ramp.job.step_index]["max_hold_seconds"]),
            actions=(
                AttentionAction(
                    "Continue…",
                    f"/ramps/{ramp.pk}/advance/",
                    Power.APPROVE,
                    "ramping",
                    authority=Action.RELEASE_AT_ONCE,
                ),
                _abort(ramp),
            ),
            subjects=(f"job:{ramp.pk}",),
            resource=ramp.switch_id,
            changes_path=f"/ramps/{ramp.pk}/#changes",
        )
        for ramp in found
        if (since := ramp.blind_since) is not None
    ]


@attention_rows(35, find_long_paused_ramps)
def list_paused_ramps(now: datetime, found: Sequence[Ramp]) -> Sequence[AttentionItem]:
    """Return an item for each ramp paused for over an hour but not yet for a day."""
    return [
        AttentionItem(
            kind="ramp_paused",
            severity="warning",
            title=f"The ramp of {ramp.switch_id} is paused at {_describe_share(ramp)} "
            f"for {format_readable(now - (ramp.job.paused_at or now))}",
            detail=f"Resume it or abort it. {ramp.job.hold_reason}",
            path=f"/ramps/{ramp.pk}/",
            since=ramp.job.paused_at or now,
            actions=(
                AttentionAction(
                    "Resume…",
                    f"/ramps/{ramp.pk}/resume/",
                    "ramps:write",
                    "ramping",
                    authority=Action.RELEASE,
                ),
                _abort(ramp),
            ),
            subjects=(f"job:{ramp.pk}",),
            resource=ramp.switch_id,
        )
        for ramp in found
    ]


def _find_live_ramps() -> QuerySet[Ramp]:
    return Ramp.objects.filter(live=True).select_related("job", "episode")


def _abort(ramp: Ramp) -> AttentionAction:
    return AttentionAction(
        "Abort and engage again",
        f"/ramps/{ramp.pk}/abort/",
        "ramps:write",
        "engaged",
        POST,
        authority=Action.ENGAGE,
    )


def _describe_share(ramp: Ramp) -> str:
    at = f"step {ramp.job.step_index + 1} of {len(ramp.plan)}"
    return f"{descriptions.format_percent(ramp.episode.allow_percent)}, {at}"
