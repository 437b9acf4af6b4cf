"""Job kinds of switches; importing their modules registers them."""

from switches.drills import job as drills
from switches.ramps import job as ramps
from switches.report import job as report

__all__ = ["drills", "ramps", "report"]
