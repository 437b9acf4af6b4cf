"""SQL on tables of other apps, registered by these apps at startup for core's use."""

from controlplane.core.registry import Port

USE_QUERIES: dict[str, str] = {}
"""Queries by table name; each returns True if its table shows that the installation was used."""
TABLES_WITHOUT_ROWS: set[str] = set()
"""Tables whose rows are left out of backups."""
PUBLISHED_HEAD = Port[str]("No published head is registered; install switches.")
"""Query of one row with the published `epoch`, `version`, `began_version` and `published_at`."""
