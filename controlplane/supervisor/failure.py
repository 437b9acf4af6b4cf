"""Reasons a run can't start or continue."""


class CannotRun(Exception):
    """Ends the run; its text is shown to the person at the terminal as it is."""

    def __init__(self, reason: str, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class StopRequested(Exception):
    """Raised when a stop is requested during a wait."""
