"""The kinds of jobs that switches have: importing their modules registers them."""

from switches.ramps import job as ramps

__all__ = ["ramps"]
