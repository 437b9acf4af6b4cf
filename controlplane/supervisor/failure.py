"""Exceptions that end a run."""


class CannotRun(Exception):
    """Raised if a run can't start or continue; the terminal shows its text."""

    def __init__(self, reason: str, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class StopRequested(Exception):
    """Raised when a stop is requested during a wait."""
