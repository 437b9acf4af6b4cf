"""The two ways a delivery can fail. Reasons are for people and never hold a secret."""


class DeliveryFailure(Exception):
    """The message did not go out, or nobody knows whether it did."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PermanentFailure(DeliveryFailure):
    """Sending it again would fail again: somebody has to change something first."""


class TransientFailure(DeliveryFailure):
    """It may work later, not before `retry_after_seconds` if the destination said so.

    `in_doubt`: it may have arrived all the same, so it has to be looked for before it is sent
    again. Otherwise it surely did not.
    """

    def __init__(
        self, reason: str, *, retry_after_seconds: float | None = None, in_doubt: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        self.in_doubt = in_doubt
