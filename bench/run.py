"""`make bench`: the data plane against a bare ASGI application, in one run on one server core.

Needs wrk, and DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL of services that may be thrown away.
The servers are held to one core and the load to another. Rounds of all targets alternate, so that
a busy neighbour disturbs them alike, and medians count.
"""

import argparse
import os
import platform
import sys
import tempfile
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import ground, load, propagation, table, targets
from bench.load import Figures

ENGAGED = 100


def main() -> int:
    options = _options()
    load.require_wrk()
    server_core, load_core = _cores()
    os.sched_setaffinity(0, {load_core})
    ground.prepare()
    token = ground.make_token()
    for _ in ground.engage(f"engaged-{n}" for n in range(ENGAGED)):
        pass
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane, rows = targets.serve(stack, server_core, options.loop, token, folder)
        figures = _alternate(rows, options.rounds, options.seconds)
        delays = propagation.measure(plane, token, options.engages)
    print(
        f"Python {platform.python_version()}, granian {version('granian')}, loop {options.loop}, "
        f"one worker on core {server_core}; wrk with {load.CONNECTIONS} connections on core "
        f"{load_core}; medians of {options.rounds} rounds of {options.seconds} s"
    )
    return table.report(rows, figures, delays)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmark the data plane.")
    parser.add_argument("--loop", default="asyncio", help="granian's event loop")
    parser.add_argument("--rounds", type=int, default=5, choices=range(1, 21), metavar="1-20")
    parser.add_argument("--seconds", type=int, default=2, choices=range(1, 11), metavar="1-10")
    parser.add_argument(
        "--engages", type=int, default=200, choices=range(2, 1001), metavar="2-1000"
    )
    return parser.parse_args()


def _cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("bench: two cores are needed, one for the server and one for the load")
        sys.exit(2)
    return cores[0], cores[1]


def _alternate(rows: list[targets.Target], rounds: int, seconds: int) -> list[Figures]:
    for row in rows:
        targets.verify(row)
        load.hit(row, 1)  # Warms connections, caches and branch predictors.
    seen: list[list[Figures]] = [[] for _ in rows]
    for _ in range(rounds):
        for row, figures in zip(rows, seen, strict=True):
            figures.append(load.hit(row, seconds))
    return [load.middle(figures) for figures in seen]


if __name__ == "__main__":
    sys.exit(main())
