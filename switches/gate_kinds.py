"""The kind of gates that ramps answer; importing its module registers it."""

from switches.ramps import manual_gates

__all__ = ["manual_gates"]
