"""How many connections this process may have: each is an open file to the system."""

import contextlib
import resource

OTHER_FILES = 300
"""What the process needs beside the held ones: databases, logs, everybody's short requests."""


def room_for(wanted: int) -> int:
    """Raise the soft limit of open files as far as allowed; how many of `wanted` have room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, 4 * wanted)
    with contextlib.suppress(ValueError, OSError):  # Not every system allows it.
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        soft = hard
    return max(0, min(wanted, soft - OTHER_FILES))
