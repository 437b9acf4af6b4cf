"""A process that retries and discards dead letters one after the other, until it is killed."""

import sys

import django

django.setup()

from breakers.dead_letters.monitoring import streams  # noqa: E402
from breakers.dead_letters.removals import actions  # noqa: E402
from controlplane.core.actors import system_actor  # noqa: E402
from controlplane.core.clock import db_now  # noqa: E402
from controlplane.core.errors import Conflict  # noqa: E402


def main(name: str, *entry_ids: str) -> None:
    stream = streams.find_stream("default", name, db_now())
    print("begins", flush=True)
    for place, entry_id in enumerate(entry_ids):
        act = actions.discard if place % 3 == 0 else actions.retry
        try:
            act(
                stream=stream,
                entry_id=entry_id,
                reason="INC-4411 fixed in 2.14.1",
                actor=system_actor("operator"),
                now=db_now(),
            )
        except Conflict as conflict:
            print(conflict, flush=True)


main(*sys.argv[1:])
