"""Imports of the job kinds of switches, which register themselves."""

from switches.drills import job as drills
from switches.ramps import job as ramps
from switches.report import job as report

__all__ = ["drills", "ramps", "report"]
