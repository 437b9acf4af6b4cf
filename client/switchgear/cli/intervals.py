"""Pauses of the command line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Intervals:
    """In seconds. Tests have shorter ones."""

    retry: float = 0.5
    """Before a request is retried."""
    follow: float = 1.0
    """Between two looks at a ramp or a job."""
    prove: float = 0.5
    """Between two looks at which instances apply a change."""
    poll: float = 5.0
    """Between two reads by `watch` without a live socket."""
    reconnect: float = 0.5
    """Longest first pause before `watch` opens its next socket."""
