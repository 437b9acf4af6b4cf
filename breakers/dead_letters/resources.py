"""JSON resources of streams and bulk jobs, for the API and live messages."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.resources import job_resource

from .bulk import replays
from .letters import ids
from .models import LetterStream, Replay
from .monitoring import streams


def stream_resources(rows: Sequence[LetterStream], now: datetime) -> list[dict[str, Any]]:
    """Return streams as last sampled, with their growth in letters per minute.

    Built without serializers, as live messages have hundreds of streams.
    """
    growth = streams.growth_per_minute(rows, now)
    return [_stream_resource(row, growth.get(row.pk, 0.0)) for row in rows]


def replay_resource(job: Job, now: datetime) -> dict[str, Any]:
    """Return a bulk job as JSON.

    It runs no query if `replay__stream` is selected and `steps` are prefetched.
    """
    replay: Replay = getattr(job, "replay")  # noqa: B009 - the checker knows it only at times
    return {
        **job_resource(job, now),
        "stream": replay.stream.name,
        "server": replay.stream.server,
        "action": replay.action,
        "filter": replay.chosen,
        "until": ids.to_entry_id(replay.until),
        "counts": {**replays.NO_COUNTS, **replay.counts},
        "rate_per_second": replay.rate_per_second,
        "most_retries": replay.most_retries,
        "waits_for": replay.waits_for,
        "approval": replay.approval_id,
    }


def _stream_resource(row: LetterStream, growth_per_minute: float) -> dict[str, Any]:
    return {
        "source": row.source,
        "server": row.server,
        "name": row.name,
        "origin": row.origin or None,
        "depth": row.depth,
        "oldest_at": _timestamp(row.oldest_at) if row.depth else None,
        "newest_at": _timestamp(row.newest_at) if row.depth else None,
        "growth_per_minute": growth_per_minute,
        "alerting": row.alarmed_at is not None,
        "alerting_since": _timestamp(row.alarmed_at),
        "arrived_total": row.arrived_total,
        "retried_total": row.retried_total,
        "vanished_total": row.vanished_total,
        "sampled_at": _timestamp(row.sampled_at),
        "gone_at": _timestamp(row.gone_at),
    }


def _timestamp(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
