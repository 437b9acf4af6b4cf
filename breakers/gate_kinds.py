"""The kind of gates that breakers answer; importing its module registers it."""

from breakers import gates

__all__ = ["gates"]
