"""SQL on tables of other apps, which their owners register at startup for core's own queries."""

from django.core.exceptions import ImproperlyConfigured

USE_QUERIES: dict[str, str] = {}
"""Queries by the table they read, which return True if the installation has been used."""
TABLES_WITHOUT_ROWS: set[str] = set()
"""Tables whose rows are left out of backups."""
_published_head: list[str] = []


def register_published_head(query: str) -> None:
    """Set the query of one row with the published `epoch`, `version` and `began_version`."""
    _published_head[:] = [query]


def published_head() -> str:
    """Return the registered query, for use as a subquery."""
    if not _published_head:
        raise ImproperlyConfigured("No published head is registered; install switches.")
    return _published_head[0]
