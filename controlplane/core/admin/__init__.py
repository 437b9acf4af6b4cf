"""Django's admin over core's tables. History is only read; all else goes through services."""

from controlplane.core.admin import history, messages, people, work
from controlplane.core.admin.site import ReadOnly, Table, each

__all__ = ["ReadOnly", "Table", "each", "history", "messages", "people", "work"]
