"""Messages for tests of transports, without a database."""

from datetime import UTC, datetime

from controlplane.core.outbox.models import OutboxMessage

AT = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)


def message(destination: str, event: str = "switch.engaged", **more) -> OutboxMessage:
    facts = more.pop(
        "facts", {"switch": "segment:finance", "reason": "결제 이중 청구", "by": "kim"}
    )
    fields = {"pk": 7, "event_key": "audit:7", "severity": "critical", "subject": "episode:12"}
    return OutboxMessage(
        destination=destination,
        event=event,
        payload={"path": "/switches/segment/finance/", **facts},
        created_at=AT,
        **{**fields, **more},
    )
