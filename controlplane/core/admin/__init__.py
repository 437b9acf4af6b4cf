"""Django's admin over core's tables. History is read-only; all else goes through services."""

from . import tables
from .site import ReadOnly, Table, apply_to_each, register_read_only

__all__ = ["ReadOnly", "Table", "apply_to_each", "register_read_only", "tables"]
