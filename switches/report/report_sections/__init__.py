"""Report sections about switches."""

from . import decisions, engaged_switches, ramps, weekly_activity

__all__ = ["decisions", "engaged_switches", "ramps", "weekly_activity"]
