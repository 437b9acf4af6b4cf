"""SQL on tables of other apps, which their owners register at startup for core's own queries."""

from controlplane.core.registry import Port

USE_QUERIES: dict[str, str] = {}
"""Queries by the table they read, which return True if the installation has been used."""
TABLES_WITHOUT_ROWS: set[str] = set()
"""Tables whose rows are left out of backups."""
PUBLISHED_HEAD = Port[str]("No published head is registered; install switches.")
"""Query of one row with the published `epoch`, `version` and `began_version`."""
