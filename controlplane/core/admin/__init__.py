"""Django's admin over core's tables. History is read-only; all else goes through services."""

from controlplane.core.admin.site import ReadOnly, Table, each, register_read_only

from . import history, work

__all__ = ["ReadOnly", "Table", "each", "history", "register_read_only", "work"]
