"""Settlement of a bulk job's open intents by the worker that continues the job."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from breakers.dead_letters.letters.batches import batch_by_size
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.redis_servers.reader import BUDGET
from breakers.dead_letters.removals import execution, settlement
from breakers.dead_letters.removals.execution import RemovalOutcome
from controlplane.core.jobs.kinds import Probe, no_probe

from .selection import AT_ONCE
from .tally import recount_removals


class ReplayHeld(Exception):
    """Raised with the hold reason if no letter can be removed for now."""


def settle_open_intents(
    replay: Replay,
    now: datetime,
    probe: Probe = no_probe,
    *,
    is_doubtful: bool = False,
    most_bytes: int | None = None,
) -> None:
    """Execute and settle the open intents of a dead worker, and recount the job.

    Pass `is_doubtful` to recount even without open intents, if a worker may have died after
    settling some. Intents for letters larger than `most_bytes` are left to the sweeper. Raises
    :class:`ReplayHeld` and :class:`ServerUnavailable`; unsettled intents stay open.
    """
    own = Departure.objects.filter(
        job=replay.job_id, state=Departure.State.INTENDED, position__gt=replay.position
    )
    if most_bytes is not None:
        own = own.filter(size_bytes__lte=most_bytes)
    try:
        sized = list(own.order_by("position").values_list("pk", "size_bytes"))
        for pks in batch_by_size(sized, max_bytes=BUDGET, max_items=AT_ONCE):
            departures = list(own.filter(pk__in=pks).order_by("position"))
            is_doubtful = True
            outcomes = execution.execute_intents(replay.stream, departures)
            with transaction.atomic():
                settlement.settle_and_count(replay.stream, departures, outcomes, now)
            probe("replay.resumed")
            raise_if_refused(outcomes)
    finally:
        if is_doubtful:
            replay.counts = recount_removals(replay.pk).counts


def raise_if_refused(outcomes: Mapping[int, RemovalOutcome]) -> None:
    """Raise :class:`ReplayHeld` if the server refused any removal; the job tries it again later."""
    refused = [one.why for one in outcomes.values() if one.kind == "refused"]
    if refused:
        raise ReplayHeld(refused[0])
