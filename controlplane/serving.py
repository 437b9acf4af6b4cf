"""How granian serves an application of ours: the web of a run, or the data plane by itself."""

BACKLOG = 4096
GRACE_SECONDS = 4
# Held polls and streams stay open for long; this many more may be under way beside them, so that
# whoever is one too many is told so, and not just left waiting for a connection.
_BESIDE_HELD = 1024


def arguments(target: str, *, host: str, port: int, workers: int, most_held: int) -> list[str]:
    """What Python is called with to serve `target` (`module:name`) by `workers` processes.

    `most_held` is how many polls and streams each of them holds open.
    """
    respawn = [] if workers == 1 else ["--respawn-failed-workers", "--respawn-interval", "0.1"]
    return [
        *("-m", "granian", "--interface", "asgi", "--host", host, "--port", str(port)),
        *("--workers", str(workers), *respawn),
        *("--backlog", str(BACKLOG), "--backpressure", str(most_held + _BESIDE_HELD)),
        *("--workers-kill-timeout", str(GRACE_SECONDS)),
        *("--no-access-log", "--log-level", "warning"),
        target,
    ]
