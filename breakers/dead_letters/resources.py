"""JSON resources of streams and bulk jobs, for the API and live messages."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rest_framework import serializers

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.resources import JobShape, describe_job

from .bulk import replays, results
from .letters import ids
from .models import LetterStream, Replay
from .monitoring import streams


def stream_resources(rows: Sequence[LetterStream], now: datetime) -> list[dict[str, Any]]:
    """Return the API resources of streams: the last sample, and the growth in letters per minute.

    Built without serializers, as live messages have hundreds of streams.
    """
    growth = streams.growth_per_minute(rows, now)
    return [
        {
            "source": row.source,
            "server": row.server,
            "name": row.name,
            "origin": row.origin or None,
            "depth": row.depth,
            "oldest_at": timestamp_or_none(row.oldest_at) if row.depth else None,
            "newest_at": timestamp_or_none(row.newest_at) if row.depth else None,
            "growth_per_minute": growth.get(row.pk, 0.0),
            "alerting": row.alarmed_at is not None,
            "alerting_since": timestamp_or_none(row.alarmed_at),
            "arrived_total": row.arrived_total,
            "retried_total": row.retried_total,
            "vanished_total": row.vanished_total,
            "sampled_at": timestamp_or_none(row.sampled_at),
            "gone_at": timestamp_or_none(row.gone_at),
        }
        for row in rows
    ]


class EntryIdField(serializers.CharField):
    """A position (padded entry id), rendered as the entry id."""

    def to_representation(self, value: str) -> str:
        return ids.to_entry_id(value)


class DeadLetterJobShape(JobShape):
    checkpoint = serializers.JSONField(help_text="Progress of the current step, or null.")
    stream = serializers.CharField(source="replay.stream.name")
    server = serializers.CharField(source="replay.stream.server")
    action = serializers.ChoiceField(replays.ACTIONS, source="replay.action")
    filter = serializers.DictField(source="replay.chosen")
    until = EntryIdField(
        source="replay.until", help_text="Id of the last letter that the job can remove."
    )
    counts = serializers.DictField(
        help_text="Numbers of letters: done, gone, skipped, why (skipped by reason), looked_at."
    )
    failed_again = serializers.IntegerField(
        source="replay.failed_again",
        help_text="Retried letters whose message has become a dead letter again, so far.",
    )
    rate_per_second = serializers.FloatField(source="replay.rate_per_second")
    most_retries = serializers.IntegerField(source="replay.most_retries")
    waits_for = serializers.ListField(child=serializers.CharField(), source="replay.waits_for")
    edit = serializers.DictField(
        allow_null=True, help_text="Change of each message (op, path, value, find), or null."
    )
    approval = serializers.IntegerField(source="replay.approval_id", allow_null=True)


def replay_resource(job: Job, now: datetime) -> dict[str, Any]:
    """Return the API resource of a bulk job.

    No query runs if `replay__stream` was selected and `steps` were prefetched.
    """
    replay: Replay = getattr(job, "replay")  # noqa: B009 - the checker knows it only at times
    counts = {**replays.NO_COUNTS, **replay.counts}
    return DeadLetterJobShape.render(
        {
            **describe_job(job, results.describe_result(replay), now),
            "replay": replay,
            "counts": counts,
            "edit": replays.redacted_edit(replay),
        }
    )
