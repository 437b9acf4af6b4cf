"""One turn of the job engine: claim what is due, let its kind go on, give the lease back."""

from datetime import datetime

from django.db import InterfaceError, OperationalError

from controlplane.core.jobs import claims, kinds
from controlplane.core.jobs.kinds import Probe, no_probe


def turn(tick: str, now: datetime, probe: Probe = no_probe) -> int:
    """Go on with every job that is due of the kinds of a tick; returns how many moved.

    Safe to run twice at once, anywhere: a job is leased to one worker at a time, and one that died
    is followed as soon as its lease is over. A kind that fails does not keep the others.
    """
    moved, failures = 0, []
    for kind in kinds.of_tick(tick):
        turns = claims.claim([kind.name], now, most=kind.most)
        if not turns:
            continue
        probe(f"{kind.name}.claimed")
        try:
            moved += kind.work(turns, now, probe)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            failures.append(error)
        probe(f"{kind.name}.worked")
        claims.give_back(turns)
    if failures:
        raise ExceptionGroup("some kinds of jobs could not go on", failures)
    return moved
