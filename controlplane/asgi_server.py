"""Command line and limits of granian, the ASGI server of the web process and the data plane."""

import contextlib
import resource

BACKLOG = 4096
GRACE_SECONDS = 4
HEADER_SECONDS = 20
"""Longest wait for the headers of a connection's next request."""
# Output buffer per connection; longer responses are sent from one shared copy.
BUFFER_BYTES = 64 * 1024
OTHER_FILES = 300
"""Files a process needs besides its connections: databases, logs, code."""
MAX_CONNECTIONS = 1_000_000
MIN_CONNECTIONS = 4096
"""Minimum that leaves room beside silent connections from one host."""


def server_arguments(target: str, *, host: str, port: int, workers: int) -> list[str]:
    """Return arguments of `python` that serve `target` (`module:name`) in `workers` processes."""
    respawn = [] if workers == 1 else ["--respawn-failed-workers", "--respawn-interval", "0.1"]
    return [
        *("-m", "granian", "--interface", "asgi", "--host", host, "--port", str(port)),
        *("--workers", str(workers), *respawn),
        # HTTP/2 detection would wait forever for the first byte of silent connections. A proxy can
        # offer HTTP/2.
        *("--http", "1", "--http1-header-read-timeout", str(HEADER_SECONDS * 1000)),
        # The application refuses excess connections. Beyond its own limit, the server would leave
        # all connections waiting, including those of the console and probes.
        *("--backlog", str(BACKLOG), "--backpressure", str(max_connections())),
        *("--http1-buffer-size", str(BUFFER_BYTES)),
        *("--workers-kill-timeout", str(GRACE_SECONDS)),
        *("--no-access-log", "--log-level", "warning"),
        target,
    ]


def max_connections() -> int:
    """Return the maximum number of connections of a process, given its limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, MAX_CONNECTIONS)
    return max(1, most - OTHER_FILES)


def raise_limit() -> None:
    """Try to raise this process's limit of open files to what :func:`max_connections` needs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not every system allows the limit it reports.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max_connections() + OTHER_FILES, hard))
