"""The two ways a delivery can fail. Reasons are for people and never hold a secret."""


class DeliveryFailure(Exception):
    """The message did not go out, or nobody knows whether it did."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PermanentFailure(DeliveryFailure):
    """Sending it again would fail again: somebody has to change something first."""


class TransientFailure(DeliveryFailure):
    """It may work later, not before `retry_after_seconds` if the destination said so."""

    def __init__(self, reason: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
