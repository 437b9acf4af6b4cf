"""`make bench`: measures the parts of Switchgear in one run, and prints one table.

Needs DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL of disposable services, and wrk for some parts.
Servers are pinned to one core and the load to another. Most parts alternate their rounds and print
medians, so that other processes disturb all alike. `--only streams,storm` runs some parts.
"""

import argparse
import gc
import os
import platform
import resource
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import fixtures, parts, wrk
from bench.table import ResultTable

DESCRIPTORS = 16_384
SIZES = {
    "rounds": (5, 1, 20),
    "seconds": (2, 1, 10),
    "engages": (200, 2, 1000),
    "listeners": (2000, 1, 4000),
    "changes": (10, 1, 100),
    "newcomers": (10_000, 10, 20_000),
    "ramps": (1000, 30, 2000),
    "reporters": (1000, 10, 2000),
    "reporting": (60, 5, 300),
    "letters": (100_000, 1000, 1_000_000),
    "audited": (50_000, 1000, 5_000_000),
    "orders": (5000, 300, 5000),
    "relays": (500, 1, 2000),
}
"""Default, minimum and maximum of each size, a field of `parts.Setting` and an option."""


def main() -> int:
    options = _options()
    if parts.WITH_WRK & set(options.only):
        wrk.require_wrk()
    _raise_descriptors()
    server_core, load_core = _cores()
    os.sched_setaffinity(0, {load_core})
    with tempfile.TemporaryDirectory() as folder:
        # Keep this run out of the data of a real installation.
        os.environ["SWITCHGEAR_DATA_DIR"] = str(Path(folder, "data"))
        fixtures.prepare()
        setting = parts.Setting(
            core=server_core,
            loop=options.loop,
            token=fixtures.make_token(),
            folder=Path(folder),
            **{name: getattr(options, name) for name in SIZES},
        )
        print(
            f"Python {platform.python_version()}, granian {version('granian')}, loop"
            f" {options.loop}, one worker on core {server_core}; load on core {load_core}, wrk with"
            f" {wrk.CONNECTIONS} connections; medians of {options.rounds} rounds of"
            f" {options.seconds} s"
        )
        table = ResultTable()
        for part in options.only:
            gc.collect()
            parts.PARTS[part](setting, table)
    for line in table.missed:
        print(f"bench: missed: {line}")
    return 1 if table.missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmark the data plane.")
    parser.add_argument("--loop", default="asyncio", help="granian's event loop")
    parser.add_argument(
        "--only", type=_parts, default=list(parts.PARTS), help=f"some of {','.join(parts.PARTS)}"
    )
    for name, (default, low, high) in SIZES.items():
        within = range(low, high + 1)
        parser.add_argument(
            f"--{name}", type=int, default=default, choices=within, metavar=f"{low}-{high}"
        )
    return parser.parse_args()


def _parts(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - set(parts.PARTS):
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(sorted(unknown))}")
    return chosen


def _cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("bench: two cores are needed, one for the server and one for the load")
        sys.exit(2)
    return cores[0], cores[1]


def _raise_descriptors() -> None:
    """Raise the limit of open files for thousands of connections, also for child processes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, DESCRIPTORS)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        print(f"bench: {wanted} open files are needed; the hard limit (ulimit -Hn) is {hard}")
        sys.exit(2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
