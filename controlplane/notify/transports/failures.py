"""Delivery failures. Reasons are shown to people and never contain a secret."""


class DeliveryFailure(Exception):
    """The message was not delivered, or its delivery is in doubt."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PermanentFailure(DeliveryFailure):
    """A failure that a retry can't fix without a change by somebody."""


class TransientFailure(DeliveryFailure):
    """A failure that may pass, not before `retry_after_seconds` if the destination gave a time.

    `in_doubt`: the message may have been delivered, and has to be looked up before it is sent
    again.
    """

    def __init__(
        self, reason: str, *, retry_after_seconds: float | None = None, in_doubt: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        self.in_doubt = in_doubt
