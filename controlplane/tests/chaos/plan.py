"""The faults of a run, drawn from a seed: the same seed gives the same faults. Pure."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 3.0
MAX_CLOCK_ERROR_SECONDS = 3600


@dataclass(frozen=True)
class Kind:
    """A kind of fault, its range of durations (0 for a moment) and its count in each deck.

    `stops_writes`: no change can go through until it is over and the console is ready again.
    """

    seconds: tuple[float, float] = (0.0, 0.0)
    count: int = 1
    stops_writes: bool = False


@dataclass(frozen=True)
class Fault:
    """A fault, `pause` seconds after the previous; `choice` in [0, 1) selects its victim."""

    number: int
    kind: str
    pause: float
    seconds: float
    choice: float

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"#{self.number} {self.kind}{lasting}"


KINDS: Mapping[str, Kind] = {
    "web.kill": Kind(stops_writes=True),
    "web.freeze": Kind((1, 5), stops_writes=True),
    "web.disk_full": Kind((2, 5)),
    "console.kill": Kind(),
    "console.cut_before_commit": Kind((1, 3)),
    "console.cut_after_commit": Kind((1, 3)),
    "worker.kill": Kind(count=2),
    "worker.freeze": Kind((2, 8), count=2),
    "beat.kill": Kind(),
    "beat.freeze": Kind((2, 7)),
    "watchdog.kill": Kind(),
    "watchdog.freeze": Kind((2, 5)),
    "plane.kill": Kind(count=2),
    "plane.freeze": Kind((1, 5)),
    "plane.clock": Kind((2, 6)),
    "plane.disk_full": Kind((2, 5)),
    "plane.database_cut": Kind((1, 5)),
    "plane.database_freeze": Kind((1, 5)),
    "redis.cut": Kind((1, 5)),
    "postgresql.kill": Kind(stops_writes=True),
    "postgresql.freeze": Kind((1, 6), stops_writes=True),
    "postgresql.backend_kill": Kind(stops_writes=True),
    "postgresql.backend_freeze": Kind((1, 4), stops_writes=True),
    "postgresql.sessions_end": Kind(count=2, stops_writes=True),
    "redis.kill": Kind(),
    "redis.freeze": Kind((1, 6)),
    "redis.flush": Kind(count=2),
    "redis.clients_kill": Kind(),
    "supervisor.kill": Kind(stops_writes=True),
    "supervisor.freeze": Kind((1, 4)),
}


def make_plan(seed: int, kinds: Mapping[str, Kind] = KINDS) -> Iterator[Fault]:
    """Yield faults without end: decks of all kinds, each shuffled, so that a long run has all."""
    draw = random.Random(seed)
    deck: list[str] = []
    number = 0
    while True:
        if not deck:
            deck = [name for name, kind in kinds.items() for _ in range(kind.count)]
            draw.shuffle(deck)
        name = deck.pop()
        number += 1
        yield Fault(
            number,
            name,
            pause=draw.uniform(MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS),
            seconds=draw.uniform(*kinds[name].seconds),
            choice=draw.random(),
        )
