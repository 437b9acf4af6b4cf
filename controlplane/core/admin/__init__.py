"""Django admin pages of core's tables: most are read-only; changes go through the services."""

from . import tables
from .site import ReadOnly, Table, apply_to_each, register_read_only

__all__ = ["ReadOnly", "Table", "apply_to_each", "register_read_only", "tables"]
