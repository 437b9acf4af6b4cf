"""Delivery failures; their reasons are shown to people, so they never contain a secret."""


class DeliveryFailure(Exception):
    """Raised if a message was not delivered, or if its delivery is in doubt."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PermanentFailure(DeliveryFailure):
    """A failure that a retry can't fix."""


class TransientFailure(DeliveryFailure):
    """A failure that may pass, after `retry_after_seconds` if the destination gave a time.

    `in_doubt` means that the message may have been delivered, so it is looked up before a retry.
    """

    def __init__(
        self, reason: str, *, retry_after_seconds: float | None = None, in_doubt: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        self.in_doubt = in_doubt
