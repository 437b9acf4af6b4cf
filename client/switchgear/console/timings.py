"""Timeouts and intervals of all communication with the console."""

import random
from dataclasses import dataclass

from switchgear.console.delays import Draw


@dataclass(frozen=True)
class Timings:
    """Timeouts and intervals in seconds. Tests use shorter ones."""

    answer: float = 10.0
    hold: int = 25
    """Time for which the console may hold a poll."""
    silence: float = 20.0
    """Longest silence of a stream."""
    event: float = 30.0
    """Longest time from the first byte of an event on a stream to its last."""
    max_poll: float = 300.0
    """Longest pause between two plain polls, whatever the console requests."""
    report: float = 10.0
    """Interval of reports, and of acknowledgements while a stream is followed."""
    report_answer: float = 5.0
    """Timeout of a report or an acknowledgement."""
    bootstrap: float = 2.0
    """Longest wait of a constructor for the URL of its bootstrap."""
    draw: Draw = random.random
    """Source of all jitter."""
