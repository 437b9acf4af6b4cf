"""The table, and whether the promised figures hold."""

from bench.load import Figures, Target
from bench.propagation import Delays

WANTED_RATIO = 0.6
WANTED_P99_MS = 100.0
HEAD = f"{'':34} {'requests/s':>11} {'p99 ms':>8} {'CPU µs':>8} {'ratio':>7} {'CPU ratio':>10}"


def report(rows: list[Target], figures: list[Figures], delays: Delays) -> int:
    """Print everything; returns the exit status, 1 if a promise is broken.

    A ratio compares with the bare application answering the same bytes: of requests per second,
    and of CPU time per request, which says the same but hardly feels other load on the machine.
    """
    print(HEAD)
    bare = figures[0]
    for row, seen in zip(rows, figures, strict=True):
        if row.name.startswith("bare"):
            bare = seen
        print(
            f"{row.name:34} {seen.requests_per_second:11,.0f} {seen.p99_ms:8.2f} {seen.cpu_us:8.1f}"
            f" {_ratio(seen, bare):7.2f} {bare.cpu_us / seen.cpu_us:10.2f}"
        )
    print(
        f"commit → poll, {delays.count} engagements: p50 {delays.p50_ms:.1f} ms,"
        f" p99 {delays.p99_ms:.1f} ms, worst {delays.worst_ms:.1f} ms"
        f" (the machine itself stalled up to {delays.stall_ms:.0f} ms)"
    )
    broken = []
    if (ratio := _ratio(figures[1], figures[0])) < WANTED_RATIO:
        broken.append(f"the 304 path is {ratio:.2f} of the bare application, under {WANTED_RATIO}")
    if delays.p99_ms >= WANTED_P99_MS:
        broken.append(
            f"commit → poll has p99 {delays.p99_ms:.0f} ms, not under {WANTED_P99_MS:.0f}"
        )
    for line in broken:
        print(f"bench: {line}")
    return 1 if broken else 0


def _ratio(figures: Figures, bare: Figures) -> float:
    return figures.requests_per_second / bare.requests_per_second
