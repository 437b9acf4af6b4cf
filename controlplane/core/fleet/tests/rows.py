"""Rows of data planes and relays for tests."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from controlplane.core.models import DataPlane

EPOCH = UUID(int=7)
VERSION = 120
SECOND = timedelta(seconds=1)


def publish(now: datetime, *, seconds_ago: float = 60, version: int = VERSION) -> None:
    """Make `version` the published one since `seconds_ago`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE switches_publication SET epoch = %s, version = %s, published_at = %s",
            [EPOCH, version, now - seconds_ago * SECOND],
        )


def create_process(name: str, now: datetime, *, silent_for: float = 1, **fields: Any) -> DataPlane:
    """Create the row of a process that was up to date when it was last heard."""
    given = {
        "upstream": "",
        "is_relay": bool(fields.get("upstream")),
        "release": "0.1.0",
        "epoch": EPOCH,
        "version": VERSION,
        "age_seconds": 0.4,
        "held": 30,
        "instances": 12,
        "started_at": now - 3600 * SECOND,
        **fields,
    }
    heard_at = now - silent_for * SECOND
    return DataPlane.objects.create(process=uuid4(), name=name, heard_at=heard_at, **given)
