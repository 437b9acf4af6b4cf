"""Django's admin over core's tables. History is only read; all else goes through services."""

from controlplane.core.admin.site import ReadOnly, Table, each

from . import history, work

__all__ = ["ReadOnly", "Table", "each", "history", "work"]
