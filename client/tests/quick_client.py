"""Clients and their parts with short timeouts and intervals."""

import random
from dataclasses import replace

from switchgear import Switchgear
from switchgear.console.timings import Timings


def draw_small() -> float:
    """Draw from the lowest hundredth, so that back-offs take milliseconds."""
    return random.random() / 100


QUICK = Timings(
    answer=1.0,
    hold=1,
    silence=1.0,
    event=1.0,
    max_poll=0.1,
    report=1000.0,  # The first one is at a draw of it, so within ten seconds as usual.
    bootstrap=0.2,
    draw=draw_small,
)


class QuickClient(Switchgear):
    """A client with short timeouts, intervals and back-offs."""

    @staticmethod
    def _make_timings() -> Timings:
        return QUICK


class PromptClient(QuickClient):
    """A quick client whose first report is sent within a tenth of a second."""

    @staticmethod
    def _make_timings() -> Timings:
        return replace(QUICK, report=10.0)
