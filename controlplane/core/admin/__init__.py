"""Django's admin over core's tables. History is only read; all else goes through services."""

from controlplane.core.admin import history, messages, people, work
from controlplane.core.admin.site import ReadOnly, each

__all__ = ["ReadOnly", "each", "history", "messages", "people", "work"]
