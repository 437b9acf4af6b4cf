"""A letter that a server does not take or give in time, though it answers otherwise.

It is tried a few times, then alone, and passed over at last: a job must not stand before it for
ever. An intent that is open of it is the clockwork's to end.
"""

from breakers.dead_letters.bulk.tally import ReplayTally

from . import eligibility, selection, worker
from .worker import LARGE_BYTES, MAX_TRIES, ReplaySlice


def count_failed_try(work: ReplaySlice) -> None:
    """Count one more try of what comes next; after too many it is passed over, if it is large.

    Raises :class:`LeaseLost`, :class:`servers.ServerAway` and :class:`servers.ServerRefused`.
    """
    work.tries += 1
    replay = work.replay
    if work.tries > MAX_TRIES:
        found = selection.peek_next(
            replay.stream, work.chosen, after=replay.position, until=replay.until
        )
        if found is not None and found[1] > LARGE_BYTES:
            counts = ReplayTally.of(replay.counts)
            counts.why[eligibility.TOO_SLOW] += 1
            replay.counts, replay.position = counts.as_dict(), found[0]
            work.tries = 0
    worker.save_checkpoint(work)
