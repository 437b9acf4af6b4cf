"""Imports of the job modules of drills, ramps and reports, which register their job kinds."""

from switches.drills import job as drills
from switches.ramps import job as ramps
from switches.report import job as report

__all__ = ["drills", "ramps", "report"]
