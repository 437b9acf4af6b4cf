"""Exceptions that end a run of the supervisor."""


class CannotRun(Exception):
    """Raised if a run can't start or continue; its text is printed before the exit."""

    def __init__(self, reason: str, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class StopRequested(Exception):
    """Raised by waiting functions if a signal has requested the end of the run."""
