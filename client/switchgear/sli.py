"""Good events of all events, counted here and reported to the console's SLOs. Bounded memory."""


class SLI:
    """One SLO's counters; safe to use from any thread."""

    def add(self, good: int, total: int) -> None: ...


class Indicators:
    """All SLIs of a client."""

    def __init__(self) -> None:
        self._slis: dict[str, SLI] = {}

    def get(self, name: str) -> SLI:
        return self._slis.setdefault(name, SLI())

    def after_fork(self) -> None:
        self._slis = {}
