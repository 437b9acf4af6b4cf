"""Builder of snapshot entries."""

from datetime import UTC, datetime
from decimal import Decimal

from switches.snapshot import SnapshotEntry


def make_entry(
    switch_id: str,
    allow_percent: str = "0",
    *,
    salt: str = "s",
    reason: str = "정산 오류, INC-7",
    engaged_at: datetime = datetime(2026, 11, 21, 2, 0, tzinfo=UTC),
    expires_at: datetime | None = None,
    on_expiry: str = "hold",
) -> SnapshotEntry:
    scope, key = switch_id.split(":")
    return SnapshotEntry(
        id=switch_id,
        scope=scope,
        key=key,
        allow_percent=Decimal(allow_percent),
        salt=salt,
        reason=reason,
        engaged_at=engaged_at,
        expires_at=expires_at,
        on_expiry=on_expiry,
    )
